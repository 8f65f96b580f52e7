// Batches of sentences of like length, by their number of tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reformer/base/philox.h"

namespace reformer {

struct PairLengths {
  int32_t source;
  int32_t target;
};

// Pairs are sorted into classes whose lengths differ by a quarter at most, and
// classes are cut into batches. That is the same in every epoch; which pairs of
// a class come together, and the order of the batches, is another in each. So
// any batch of any epoch can be made by itself.
class LengthBatches {
 public:
  // A batch has rows * (source + target length) <= most_positions, padding
  // included (0: any), and at most most_rows rows (0: any), and one row at
  // least. Lengths are padded to longest at most, which none exceeds.
  struct Limits {
    int64_t most_positions = 0;
    int64_t most_rows = 0;
    int64_t longest = 0;
  };
  LengthBatches() = default;
  LengthBatches(const std::vector<PairLengths>& pairs, const Limits& limits);

  // Of an epoch.
  int64_t count() const { return static_cast<int64_t>(batches_.size()); }

  struct Batch {
    std::vector<int64_t> pairs;  // their places in what was given
    int64_t source_length;       // padded
    int64_t target_length;
  };

  // In the order of the classes, the same pairs every time.
  Batch in_order(int64_t index) const;

  // The index-th batch of a training that goes on through epochs.
  using EpochKey = std::function<PhiloxKey(int64_t epoch, int64_t purpose)>;
  Batch shuffled_batch(int64_t index, const EpochKey& key) const;

 private:
  struct Class {
    int64_t begin;  // in order_
    int64_t end;
    int64_t source_length;
    int64_t target_length;
  };
  struct Cut {
    int64_t begin;  // in order_
    int64_t end;
    int64_t first_class;
    int64_t source_length;
    int64_t target_length;
  };

  void sort_into_classes(const std::vector<PairLengths>& pairs,
                         int64_t longest);
  void cut(const Limits& limits);

  std::vector<int32_t> order_;  // of the pairs, class by class
  std::vector<Class> classes_;
  std::vector<Cut> batches_;
};

}  // namespace reformer
