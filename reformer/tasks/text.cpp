#include "reformer/tasks/text.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "reformer/base/errors.h"
#include "reformer/data/decoded_text.h"
#include "reformer/data/row_key.h"

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

}  // namespace

TextTask::TextTask(const Config& config, DecodeObserver& observer)
    : batch_(config.train.batch),
      length_(config.train.length),
      seed_(config.train.seed) {
  require(!config.task.data.empty(),
          "task.data: a file, folder or archive of text, or - for standard "
          "input, is required, got none; --data names it");
  require_one_standard_input(config.task);
  split_files(config.task, observer);
  require(train_.size >= length_, train_.file->path(), ": a text of ",
          train_.file->size(), " bytes, ", train_.size,
          " of them for training, is shorter than one sequence, train.length "
          "= ",
          length_);
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

  train_ = {data, 0, train_end};
  validation_ = {data, train_end, test_begin - train_end};
  test_ = {data, test_begin, size - test_begin};
  for (auto [path, range] : {std::pair{&task.validation, &validation_},
                             std::pair{&task.test, &test_}}) {
    if (path->empty()) continue;
    const File own = opened(*path);
    *range = {own, 0, own->size()};
  }
  require_evaluable("task.validation", data, validation_.size);
  require_evaluable("task.test", data, test_.size);
}

const TextTask::Range& TextTask::range_of(Split split) const {
  return split == Split::kValidation ? validation_ : test_;
}

// A window beyond the end of the range is padded, and its padding not counted.
Batch TextTask::windows(const Range& range,
                        const std::vector<int64_t>& starts) const {
  const auto rows = static_cast<int64_t>(starts.size());
  Batch batch{at::zeros({rows, length_}, at::kLong),
              at::zeros({rows, length_}, at::kBool)};
  auto* tokens = batch.tokens.mutable_data_ptr<int64_t>();
  auto* loss_mask = batch.loss_mask.mutable_data_ptr<bool>();
  std::vector<uint8_t> bytes;
  for (const int64_t start : starts) {
    bytes.resize(size_t(std::min(length_, range.size - start)));
    range.file->read(range.begin + start, bytes);
    std::copy(bytes.begin(), bytes.end(), tokens);
    std::fill_n(loss_mask, bytes.size(), true);
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
  return windows(train_, starts);
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
  return identities_of(*train_.file, *validation_.file);
}

double TextTask::metric_of(double mean_loss) const {
  return mean_loss / std::log(2.0);
}

}  // namespace reformer
