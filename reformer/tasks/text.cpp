#include "reformer/tasks/text.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "reformer/base/errors.h"
#include "reformer/data/decoded_text.h"
#include "reformer/data/row_key.h"
#include "reformer/data/tokenized_text.h"
#include "reformer/tasks/task_tokenizer.h"
#include "reformer/tasks/text_repeats.h"

namespace reformer {
namespace {

using File = std::shared_ptr<const Bytes>;

void require_one_standard_input(const TaskConfig& task) {
  const int inputs =
      (task.data == "-") + (task.validation == "-") + (task.test == "-");
  require(inputs <= 1,
          "task.data, task.validation and task.test: standard input can be "
          "only one of them, got ",
          inputs);
}

void require_evaluable(const char* key, const File& file, int64_t size) {
  require(size > 0, key, ": 5% of ", file->path(), ", ", file->size(),
          " bytes, are none; a longer text or a file of its own is required");
}

// Of sparse files of exabytes too, of which a hundred times is too much.
int64_t percent_of(int64_t size, int64_t percent) {
  return size / 100 * percent + size % 100 * percent / 100;
}

// Uniform in [0, count); the remainder's bias is below count / 2^64.
int64_t start_of(PhiloxKey key, int64_t count) {
  const auto bits = philox(key, {0, 0, 0, 0});
  const uint64_t wide = (uint64_t{bits[1]} << 32) | bits[0];
  return static_cast<int64_t>(wide % static_cast<uint64_t>(count));
}

// Of a sequence [length], in place; of its text the end is pushed out.
void repeat_pieces(const at::Tensor& sequence,
                   const std::vector<SequencePiece>& pieces) {
  auto* tokens = sequence.mutable_data_ptr<int64_t>();
  const std::vector<int64_t> text(tokens, tokens + sequence.numel());
  auto next = text.begin();
  int64_t at = 0;
  for (const auto& [size, source] : pieces) {
    if (source == SequencePiece::kText) {
      std::copy_n(next, size, tokens + at);
      next += size;
    } else {
      std::copy_n(tokens + source, size, tokens + at);
    }
    at += size;
  }
}

}  // namespace

TextTask::TextTask(const Config& config, DecodeObserver& observer,
                   std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)),
      byte_offset_(config.task.byte_offset),
      batch_(config.train.batch),
      length_(config.train.length),
      seed_(config.train.seed),
      repeats_(config.task.repeats) {
  require(!config.task.data.empty(),
          "task.data: a file, folder or archive of text, or - for standard "
          "input, is required, got none; --data names it");
  require_one_standard_input(config.task);
  split_files(config.task, observer);
  if (tokenizer_ != nullptr) tokenize(config.task, observer);
  require(train_.size >= length_, train_.file->path(), ": a text of ",
          train_.file->size(), " bytes, ", train_.bytes,
          " of them for training",
          tokenizer_ == nullptr
              ? std::string()
              : ", which are " + std::to_string(train_.size) + " tokens",
          ", is shorter than one sequence, train.length = ", length_);
}

void TextTask::split_files(const TaskConfig& task, DecodeObserver& observer) {
  const auto opened = [&](const std::string& path) {
    return open_text(path, task.cache, observer);
  };
  const File data = opened(task.data);
  const int64_t size = data->size();
  const bool own_validation = !task.validation.empty();
  const bool own_test = !task.test.empty();
  const int64_t test_begin = percent_of(size, own_test ? 100 : 95);
  const int64_t train_end =
      percent_of(size, 100 - (own_test ? 0 : 5) - (own_validation ? 0 : 5));

  const auto range = [&](int64_t begin, int64_t end) {
    return Range{data, begin, end - begin, end - begin, nullptr};
  };
  train_ = range(0, train_end);
  validation_ = range(train_end, test_begin);
  test_ = range(test_begin, size);
  for (auto [path, range] : {std::pair{&task.validation, &validation_},
                             std::pair{&task.test, &test_}}) {
    if (path->empty()) continue;
    const File own = opened(*path);
    *range = {own, 0, own->size(), own->size(), nullptr};
  }
  require_evaluable("task.validation", data, validation_.size);
  require_evaluable("task.test", data, test_.size);
}

// The splits of bytes become splits of tokens.
void TextTask::tokenize(const TaskConfig& task, DecodeObserver& observer) {
  const TextTokens tokens(tokenizer_);
  const auto take = [](Range& range, const TokenizedText& text, size_t part) {
    const auto& [begin, size, bytes] = text.parts[part];
    range.begin = begin;
    range.size = size;
    range.bytes = bytes;
    range.tokens = text.tokens;
  };
  std::vector<Range*> shared = {&train_};
  if (task.validation.empty()) shared.push_back(&validation_);
  if (task.test.empty()) shared.push_back(&test_);
  std::vector<int64_t> cuts;
  for (size_t i = 1; i < shared.size(); ++i) cuts.push_back(shared[i]->begin);
  const auto text = open_tokenized(task.data, *train_.file, tokens, cuts,
                                   task.cache, observer);
  for (size_t i = 0; i < shared.size(); ++i) take(*shared[i], text, i);
  for (auto [path, range] : {std::pair{&task.validation, &validation_},
                             std::pair{&task.test, &test_}}) {
    if (path->empty()) continue;
    take(*range,
         open_tokenized(*path, *range->file, tokens, {}, task.cache, observer),
         0);
  }
  for (auto [key, range] : {std::pair{"task.validation", &validation_},
                            std::pair{"task.test", &test_}}) {
    require(range->size > 0, key, ": ", range->file->path(),
            " leaves no token for it; a longer text or a file of its own is "
            "required");
  }
}

const TextTask::Range& TextTask::range_of(Split split) const {
  return split == Split::kValidation ? validation_ : test_;
}

void TextTask::read(const Range& range, int64_t start,
                    std::span<int64_t> out) const {
  if (range.tokens != nullptr) return read_tokens(*range.tokens, start, out);
  std::vector<uint8_t> bytes(out.size());
  range.file->read(start, bytes);
  std::transform(bytes.begin(), bytes.end(), out.begin(),
                 [&](uint8_t byte) { return byte + byte_offset_; });
}

// A window beyond the end of the range is padded, and its padding not counted.
Batch TextTask::windows(const Range& range,
                        const std::vector<int64_t>& starts) const {
  const auto rows = static_cast<int64_t>(starts.size());
  Batch batch{at::zeros({rows, length_}, at::kLong),
              at::zeros({rows, length_}, at::kBool)};
  auto* tokens = batch.tokens.mutable_data_ptr<int64_t>();
  auto* loss_mask = batch.loss_mask.mutable_data_ptr<bool>();
  for (const int64_t start : starts) {
    const auto size = size_t(std::min(length_, range.size - start));
    read(range, range.begin + start, {tokens, size});
    std::fill_n(loss_mask, size, true);
    tokens += length_;
    loss_mask += length_;
  }
  return batch;
}

Batch TextTask::training_batch(int64_t index) const {
  std::vector<int64_t> starts;
  for (int64_t row = 0; row < batch_; ++row) {
    const auto key = row_key(seed_, Draw::kTextWindow, index, row);
    starts.push_back(start_of(key, train_.size - length_ + 1));
  }
  auto batch = windows(train_, starts);
  if (repeats_ > 0) {
    for (int64_t row = 0; row < batch_; ++row) {
      const auto key = row_key(seed_, Draw::kTextRepeats, index, row);
      repeat_pieces(batch.tokens[row],
                    pieces_with_repeats(length_, repeats_, key));
    }
  }
  return batch;
}

int64_t TextTask::evaluation_batches(Split split) const {
  const int64_t sequences = (range_of(split).size + length_ - 1) / length_;
  return (sequences + batch_ - 1) / batch_;
}

Batch TextTask::evaluation_batch(Split split, int64_t index) const {
  assert(index >= 0 && index < evaluation_batches(split));
  const Range& range = range_of(split);
  std::vector<int64_t> starts;
  for (int64_t row = index * batch_;
       row < (index + 1) * batch_ && row * length_ < range.size; ++row) {
    starts.push_back(row * length_);
  }
  return windows(range, starts);
}

std::vector<DataIdentity> TextTask::data() const {
  auto identities = identities_of(*train_.file, *validation_.file);
  if (tokenizer_ != nullptr) identities.push_back(identity_of(*tokenizer_));
  return identities;
}

namespace {

double bits_per_byte(double mean_loss, int64_t tokens, int64_t bytes) {
  return mean_loss / std::log(2.0) * (double(tokens) / double(bytes));
}

}  // namespace

double TextTask::metric_of(double mean_loss) const {
  return bits_per_byte(mean_loss, train_.size, train_.bytes);
}

double TextTask::metric_of(double mean_loss, Split split) const {
  const auto& range = range_of(split);
  return bits_per_byte(mean_loss, range.size, range.bytes);
}

}  // namespace reformer
