// Associative recall: keys with values, asked for anywhere later.
#pragma once

#include "reformer/base/philox.h"
#include "reformer/tasks/task.h"

namespace reformer {

// A sequence is cut into slots of task.key_length + 1 tokens. Two fifths of
// them hold a pair, a key and its value; as many a later query, the same key
// and the same value; all other tokens are filler.
//
//   values, filler  0 to task.alphabet - 1, drawn at random
//   keys            task.alphabet to 2 task.alphabet - 1, no key in two pairs
//
// So a run of key tokens is one key, whatever stands around it. The loss
// counts the values of queries: who finds the key again knows them, and nothing
// else tells. Every octave of distances between pair and query, from one slot
// to nearly the whole sequence, has about as many.
class RecallTask : public Task {
 public:
  // Examples of a split, always the same ones for a seed and a length.
  static constexpr int64_t kExamples = 64;

  explicit RecallTask(const Config& config);

  Batch training_batch(int64_t index) const override;
  int64_t evaluation_batches(Split split) const override;
  Batch evaluation_batch(Split split, int64_t index) const override;
  std::string metric_name() const override { return "loss"; }
  double metric_of(double mean_loss) const override { return mean_loss; }

 private:
  Batch empty_batch(int64_t rows) const;
  void write_row(Batch& batch, int64_t row, PhiloxKey key) const;

  int64_t tokens_;
  int64_t key_length_;
  int64_t pairs_;  // of a sequence
  int64_t batch_;
  int64_t length_;
  int64_t seed_;
};

}  // namespace reformer
