// The paper's synthetic task (Sec. 5, Table 2): 0w0w, where the second w can
// only be known by looking at the first.
#pragma once

#include "reformer/tasks/task.h"

namespace reformer {

// Sequences of train.length tokens: w has train.length / 2 - 1 of them, each
// drawn from 1 to task.alphabet. The loss counts the second half, 0w: the first
// w is noise that nothing predicts.
class DuplicationTask : public Task {
 public:
  // Examples of a split, always the same ones for a seed.
  static constexpr int64_t kExamples = 64;

  explicit DuplicationTask(const Config& config);

  Batch training_batch(int64_t index) const override;
  int64_t evaluation_batches(Split split) const override;
  Batch evaluation_batch(Split split, int64_t index) const override;
  std::string metric_name() const override { return "loss"; }
  double metric_of(double mean_loss) const override { return mean_loss; }

 private:
  int64_t tokens_;
  int64_t batch_;
  int64_t length_;
  int64_t seed_;
};

}  // namespace reformer
