#include "reformer/tasks/translation.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "reformer/base/errors.h"
#include "reformer/data/row_key.h"
#include "reformer/tasks/bitext_splits.h"
#include "reformer/tasks/task_tokenizer.h"

namespace reformer {
namespace {

int64_t count(const std::vector<bool>& lines) {
  return std::count(lines.begin(), lines.end(), true);
}

// What was left out of a split, as one sentence; empty where nothing was.
std::string left_out(const char* split, int64_t pairs, int64_t without,
                     int64_t too_long, int64_t longest) {
  if (without + too_long == 0) return "";
  std::string what;
  if (without > 0) {
    what = std::to_string(without) + " with a side that is empty or not UTF-8";
  }
  if (too_long > 0) {
    if (!what.empty()) what += ", ";
    what += std::to_string(too_long) +
            " of more than train.length = " + std::to_string(longest) +
            " tokens";
  }
  return std::string(split) + ": of " + std::to_string(pairs) +
         " pairs are left out: " + what;
}

}  // namespace

BitextRequest bitext_request(const TaskConfig& task, const std::string& data) {
  return {data, task.source_language, task.target_language, task.cache};
}

TranslationTask::TranslationTask(const Config& config,
                                 std::shared_ptr<const Tokenizer> tokenizer,
                                 DecodeObserver& observer)
    : tokenizer_(std::move(tokenizer)),
      limits_{config.train.batch_tokens,
              config.train.batch_tokens > 0 ? 0 : config.train.batch,
              config.train.length},
      seed_(config.train.seed) {
  const auto& task = config.task;
  require(!task.data.empty(),
          "task.data: bitext is required, two files with a comma between them, "
          "a .tsv, a folder or an archive; --data names it");
  split_data(task, opened(task, task.data, observer));
  for (auto [path, split] : {std::pair{&task.validation, &validation_},
                             std::pair{&task.test, &test_}}) {
    if (path->empty()) continue;
    split->source = opened(task, *path, observer);
    split->lines.assign(split->source->text->labels().size(), true);
  }
  take_pairs(train_, "training", observer);
  take_pairs(validation_, "validation", observer);
  take_pairs(test_, "test", observer);
}

std::shared_ptr<const TranslationTask::Source> TranslationTask::opened(
    const TaskConfig& task, const std::string& data,
    DecodeObserver& observer) const {
  const auto request = bitext_request(task, data);
  Source source;
  source.text = open_bitext(request, observer);
  source.bitext =
      open_tokenized_bitext(request, *source.text, *tokenizer_, observer);
  return std::make_shared<const Source>(std::move(source));
}

void TranslationTask::split_data(const TaskConfig& task,
                                 const std::shared_ptr<const Source>& source) {
  const auto splits = bitext_splits(task, source->text->labels());
  for (auto [pairs, split] : {std::pair{&train_, BitextSplit::kTrain},
                              std::pair{&validation_, BitextSplit::kValidation},
                              std::pair{&test_, BitextSplit::kTest}}) {
    pairs->source = source;
    for (const auto of_pair : splits) {
      pairs->lines.push_back(of_pair == split);
    }
  }
}

// Those of its lines that can be used.
void TranslationTask::take_pairs(Pairs& split, const char* name,
                                 DecodeObserver& observer) {
  int64_t too_long = 0;
  std::vector<PairLengths> lengths;
  for (const auto& pair : split.source->bitext.pairs) {
    if (!split.lines[size_t(pair.index)]) continue;
    if (std::max(pair.source_length, pair.target_length) > limits_.longest) {
      ++too_long;
      continue;
    }
    split.pairs.push_back(pair);
    lengths.push_back({pair.source_length, pair.target_length});
  }
  const int64_t lines = count(split.lines);
  const int64_t used = std::ssize(split.pairs);
  const std::string sentence =
      left_out(name, lines, lines - used - too_long, too_long, limits_.longest);
  require(used > 0, "task.data: no pair of sentences for the ", name, " split",
          sentence.empty() ? std::string() : " (" + sentence + ")",
          "; name one by task.validation or task.test, or give more data");
  if (!sentence.empty()) observer.warned(sentence);
  split.batches = LengthBatches(lengths, limits_);
}

const TranslationTask::Pairs& TranslationTask::pairs_of(Split split) const {
  return split == Split::kValidation ? validation_ : test_;
}

BatchRows::BatchRows(int64_t rows, int64_t source_length,
                     int64_t target_length) {
  batch_.tokens = at::zeros({rows, target_length}, at::kLong);
  batch_.loss_mask = at::zeros({rows, target_length}, at::kBool);
  batch_.source = at::zeros({rows, source_length}, at::kLong);
  batch_.source_mask = at::zeros({rows, source_length}, at::kBool);
}

void BatchRows::add(std::span<const int32_t> source,
                    std::span<const int32_t> target) {
  const auto put = [&](std::span<const int32_t> row, at::Tensor& tokens,
                       at::Tensor& mask) {
    const int64_t begin = row_ * tokens.size(1);
    assert(row_ < tokens.size(0) && std::ssize(row) <= tokens.size(1));
    std::copy(row.begin(), row.end(),
              tokens.mutable_data_ptr<int64_t>() + begin);
    std::fill_n(mask.mutable_data_ptr<bool>() + begin, row.size(), true);
  };
  put(source, batch_.source, batch_.source_mask);
  put(target, batch_.tokens, batch_.loss_mask);
  ++row_;
}

Batch TranslationTask::batch_of(const Pairs& split,
                                const LengthBatches::Batch& chosen) const {
  BatchRows rows(std::ssize(chosen.pairs), chosen.source_length,
                 chosen.target_length);
  std::vector<int32_t> tokens;
  for (const int64_t index : chosen.pairs) {
    const auto& pair = split.pairs[size_t(index)];
    read_pair(*split.source->bitext.tokens, pair, tokens);
    const std::span<const int32_t> both(tokens);
    rows.add(both.first(size_t(pair.source_length)),
             both.subspan(size_t(pair.source_length)));
  }
  return rows.take();
}

Batch TranslationTask::training_batch(int64_t index) const {
  const auto key = [&](int64_t epoch, int64_t purpose) {
    return row_key(seed_, Draw::kTranslationOrder, epoch, purpose);
  };
  return batch_of(train_, train_.batches.shuffled_batch(index, key));
}

int64_t TranslationTask::evaluation_batches(Split split) const {
  return pairs_of(split).batches.count();
}

Batch TranslationTask::evaluation_batch(Split split, int64_t index) const {
  assert(index >= 0 && index < evaluation_batches(split));
  const auto& pairs = pairs_of(split);
  return batch_of(pairs, pairs.batches.in_order(index));
}

double TranslationTask::metric_of(double mean_loss) const {
  return std::exp(mean_loss);
}

SplitSizes TranslationTask::sizes() const {
  return {std::ssize(train_.pairs), std::ssize(validation_.pairs),
          std::ssize(test_.pairs)};
}

std::vector<DataIdentity> TranslationTask::data() const {
  auto identities =
      identities_of(*train_.source->text, *validation_.source->text);
  identities.push_back(identity_of(*tokenizer_));
  return identities;
}

std::vector<LinePair> TranslationTask::lines(Split split) const {
  const auto& pairs = pairs_of(split);
  BitextReader reader(*pairs.source->text);
  std::vector<LinePair> lines;
  LinePair pair;
  for (size_t i = 0; reader.next(pair); ++i) {
    if (pairs.lines[i]) lines.push_back(pair);
  }
  return lines;
}

}  // namespace reformer
