// Language modelling of images as sequences of sub-pixels (paper Sec. 5,
// imagenet64).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reformer/data/cache.h"
#include "reformer/tasks/task.h"

namespace reformer {

// A sequence is an image of task.image_size squared, its sub-pixels by row,
// column and channel: train.length = 3 image_size^2 tokens from 0 to 255.
// Training goes through all images of its split in an order shuffled anew for
// each time; evaluation through those of its own in the order of the data.
//
// The splits are those that the data names (see split_named). One that it does
// not name, and that has no data of its own (task.validation, task.test), is
// every 20th image of the training split, chosen by a fixed shuffle.
class ImagesTask : public Task {
 public:
  // Throws Error as open_images does, and for a split without an image.
  ImagesTask(const Config& config, DecodeObserver& observer);

  Batch training_batch(int64_t index) const override;
  int64_t evaluation_batches(Split split) const override;
  Batch evaluation_batch(Split split, int64_t index) const override;
  std::string metric_name() const override { return "bits per dim"; }
  double metric_of(double mean_loss) const override;
  SplitSizes sizes() const override {
    return {train_.count() * length_, validation_.count() * length_,
            test_.count() * length_};
  }
  std::vector<DataIdentity> data() const override;

 private:
  using Data = std::shared_ptr<const CacheFile>;
  struct Images {
    Data data;
    std::vector<int32_t> places;  // in `data`, counted in images
    int64_t count() const { return static_cast<int64_t>(places.size()); }
  };

  void split_data(const TaskConfig& task, const Data& data);
  void hold_out(Images& split, int64_t number);
  const Images& images_of(Split split) const;
  Batch batch_of(const Images& split,
                 const std::vector<int64_t>& indices) const;

  Images train_;
  Images validation_;
  Images test_;
  int64_t batch_;
  int64_t length_;
  int64_t seed_;
};

}  // namespace reformer
