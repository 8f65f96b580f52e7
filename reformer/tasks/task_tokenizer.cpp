#include "reformer/tasks/task_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/base/xxhash64.h"
#include "reformer/data/bitext.h"
#include "reformer/tasks/bitext_splits.h"
#include "reformer/tasks/toy_language.h"
#include "reformer/tasks/translation.h"

namespace reformer {
namespace {

// Of longer bitexts every second, third, ... pair: more lines hardly change the
// pieces, and take their time.
constexpr int64_t kMostPairs = 250'000;

// The lines of the training pairs, of both languages.
class TrainingLines {
 public:
  TrainingLines(const CacheFile& text, const TaskConfig& task)
      : reader_(text), splits_(bitext_splits(task, text.labels())) {
    const int64_t pairs =
        std::count(splits_.begin(), splits_.end(), BitextSplit::kTrain);
    every_ = (pairs + kMostPairs - 1) / kMostPairs;
  }

  bool next(std::string& line) {
    if (has_target_) {
      has_target_ = false;
      line = std::move(pair_.target);
      return true;
    }
    if (!next_pair()) return false;
    has_target_ = true;
    line = std::move(pair_.source);
    return true;
  }

 private:
  bool next_pair() {
    while (reader_.next(pair_)) {
      const auto split = splits_[index_++];
      if (split == BitextSplit::kTrain && training_++ % every_ == 0) {
        return true;
      }
    }
    return false;
  }

  BitextReader reader_;
  std::vector<BitextSplit> splits_;
  LinePair pair_;
  bool has_target_ = false;
  size_t index_ = 0;
  int64_t training_ = 0;
  int64_t every_ = 1;
};

std::string made_of(const CacheFile& text, const Config& config,
                    DecodeObserver& observer) {
  const int64_t vocabulary = config.model.vocabulary;
  observer.began("making a tokenizer of " + std::to_string(vocabulary) +
                 " pieces");
  TrainingLines lines(text, config.task);
  return train_tokenizer([&](std::string& line) { return lines.next(line); },
                         {PieceKind::kBpe, vocabulary, /*or_fewer=*/true});
}

std::shared_ptr<const Tokenizer> made_tokenizer(const Config& config,
                                                DecodeObserver& observer) {
  const BitextRequest request = bitext_request(config.task, config.task.data);
  const auto text = open_bitext(request, observer);
  const auto decode = [&](Collection&, const AppendPayload& append) {
    const std::string model = made_of(*text, config, observer);
    append({reinterpret_cast<const uint8_t*>(model.data()), model.size()});
    return Decoded{};
  };
  const auto own = [](const std::string& data) {
    return data.empty() ? " held-out" : " own";
  };
  const auto file =
      cached({request.cache, request.data,
              "tokenizer 2 bpe " + request.source + " " + request.target + " " +
                  std::to_string(config.model.vocabulary) +
                  own(config.task.validation) + own(config.task.test),
              bitext_files(request)},
             decode, observer);
  std::string bytes(static_cast<size_t>(file->size()), '\0');
  file->read(0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
  return parse_tokenizer(bytes, file->path());
}

std::shared_ptr<const Tokenizer> opened(const Config& config,
                                        DecodeObserver& observer) {
  if (config.task.name == TaskKind::kTranslationToy) {
    return toy_language(config.task.alphabet);
  }
  if (!config.task.tokenizer.empty()) {
    return load_tokenizer(config.task.tokenizer);
  }
  if (config.task.name != TaskKind::kTranslation) return nullptr;
  return made_tokenizer(config, observer);
}

}  // namespace

std::shared_ptr<const Tokenizer> task_tokenizer(Config& config,
                                                DecodeObserver& observer) {
  auto tokenizer = opened(config, observer);
  if (tokenizer != nullptr) {
    config.model.vocabulary = tokenizer->vocabulary_size();
  }
  return tokenizer;
}

std::shared_ptr<const Tokenizer> run_tokenizer(const Config& config,
                                               const std::string& file) {
  const TaskKind task = config.task.name;
  if (task == TaskKind::kTranslationToy) {
    return toy_language(config.task.alphabet);
  }
  const bool needed =
      task == TaskKind::kTranslation ||
      (task == TaskKind::kText && !config.task.tokenizer.empty());
  if (!needed && file.empty()) return nullptr;
  require(!file.empty(),
          "tokenizer.model: is required beside the checkpoint of a ",
          config.task.name, " model, and is not there");
  auto tokenizer = parse_tokenizer(file, "tokenizer.model");
  require_vocabulary(config, *tokenizer);
  return tokenizer;
}

void require_vocabulary(const Config& config, const Tokenizer& tokenizer) {
  require(tokenizer.vocabulary_size() == config.model.vocabulary,
          "model.vocabulary: ", tokenizer.vocabulary_size(),
          ", the pieces of the tokenizer, is required, got ",
          config.model.vocabulary);
}

DataIdentity identity_of(const Tokenizer& tokenizer) {
  return {"task.tokenizer", std::ssize(tokenizer.file()),
          xxhash64_hex(tokenizer.file())};
}

}  // namespace reformer
