#include "reformer/tasks/images.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "reformer/base/errors.h"
#include "reformer/data/decoded_images.h"
#include "reformer/data/row_key.h"
#include "reformer/data/shuffle.h"

namespace reformer {
namespace {

constexpr int64_t kHeldOut = 20;  // one of so many

void require_images(const std::string& source, const char* split,
                    int64_t count) {
  require(count > 0, source, ": no image is left for ", split,
          "; more of them, folders named train, validation and test, or "
          "task.validation and task.test are required");
}

}  // namespace

ImagesTask::ImagesTask(const Config& config, DecodeObserver& observer)
    : batch_(config.train.batch),
      length_(config.train.length),
      seed_(config.train.seed) {
  const auto& task = config.task;
  require(!task.data.empty(),
          "task.data: a folder or archive of images is required, got none; "
          "--data names it");
  const auto opened = [&](const std::string& path) {
    return open_images(path, task.image_size, task.cache, observer);
  };
  split_data(task, opened(task.data));
  for (auto [path, split] : {std::pair{&task.validation, &validation_},
                             std::pair{&task.test, &test_}}) {
    if (path->empty()) continue;
    split->data = opened(*path);
    split->places.resize(split->data->labels().size());
    std::iota(split->places.begin(), split->places.end(), 0);
  }
  require_images(task.data, "training", train_.count());
  require_images(task.data, "validation", validation_.count());
  require_images(task.data, "test", test_.count());
}

void ImagesTask::split_data(const TaskConfig& task, const Data& data) {
  for (Images* split : {&train_, &validation_, &test_}) split->data = data;
  const auto& labels = data->labels();
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto label = static_cast<ImageSplit>(labels[i]);
    auto& split = label == ImageSplit::kTrain        ? train_
                  : label == ImageSplit::kValidation ? validation_
                                                     : test_;
    split.places.push_back(static_cast<int32_t>(i));
  }
  const int64_t number = (train_.count() + kHeldOut - 1) / kHeldOut;
  if (task.validation.empty() && validation_.count() == 0) {
    hold_out(validation_, number);
  }
  if (task.test.empty() && test_.count() == 0) hold_out(test_, number);
}

// Moves `number` images from training to `split`. The choice depends on
// nothing but how many there are: another seed is evaluated on the same.
void ImagesTask::hold_out(Images& split, int64_t number) {
  const auto key = row_key(/*seed=*/0, Draw::kImageHoldOut, /*index=*/0, 0);
  std::vector<int32_t> rest;
  for (int64_t i = 0; i < train_.count(); ++i) {
    const bool held = shuffled(i, train_.count(), key) < number;
    (held ? split.places : rest).push_back(train_.places[size_t(i)]);
  }
  train_.places = std::move(rest);
}

const ImagesTask::Images& ImagesTask::images_of(Split split) const {
  return split == Split::kValidation ? validation_ : test_;
}

Batch ImagesTask::batch_of(const Images& split,
                           const std::vector<int64_t>& indices) const {
  const auto rows = static_cast<int64_t>(indices.size());
  Batch batch{at::empty({rows, length_}, at::kLong),
              at::ones({rows, length_}, at::kBool)};
  auto* tokens = batch.tokens.mutable_data_ptr<int64_t>();
  std::vector<uint8_t> bytes(static_cast<size_t>(length_));
  for (const int64_t index : indices) {
    split.data->read(split.places[size_t(index)] * length_, bytes);
    tokens = std::copy(bytes.begin(), bytes.end(), tokens);
  }
  return batch;
}

// The n-th image drawn is number n % count of a shuffle of its own for each
// n / count: all of them once before any comes again.
Batch ImagesTask::training_batch(int64_t index) const {
  std::vector<int64_t> indices;
  for (int64_t row = 0; row < batch_; ++row) {
    const int64_t drawn = index * batch_ + row;
    const int64_t count = train_.count();
    const auto key = row_key(seed_, Draw::kImageOrder, drawn / count, 0);
    indices.push_back(shuffled(drawn % count, count, key));
  }
  return batch_of(train_, indices);
}

int64_t ImagesTask::evaluation_batches(Split split) const {
  return (images_of(split).count() + batch_ - 1) / batch_;
}

Batch ImagesTask::evaluation_batch(Split split, int64_t index) const {
  assert(index >= 0 && index < evaluation_batches(split));
  const auto& images = images_of(split);
  const int64_t first = index * batch_;
  std::vector<int64_t> indices(
      static_cast<size_t>(std::min(batch_, images.count() - first)));
  std::iota(indices.begin(), indices.end(), first);
  return batch_of(images, indices);
}

std::vector<DataIdentity> ImagesTask::data() const {
  return identities_of(*train_.data, *validation_.data);
}

double ImagesTask::metric_of(double mean_loss) const {
  return mean_loss / std::log(2.0);
}

}  // namespace reformer
