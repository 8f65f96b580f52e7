// Language modelling of the bytes of any files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "reformer/data/bytes.h"
#include "reformer/data/cache.h"
#include "reformer/tasks/task.h"

namespace reformer {

// Training: windows of train.length bytes, each starting anywhere in the
// training split, with pieces of them a second time (task.repeats). Evaluation:
// the split in order, cut into such windows, every byte once.
//
// The splits are the first 90%, the next 5% and the last 5% of task.data, which
// is what open_text takes. A split with data of its own (task.validation,
// task.test) leaves its 5% to training.
//
// With a tokenizer the same of tokens: positions are tokens, splits end at the
// first end of a line behind their percentage (open_tokenized), and bits per
// byte are the loss of a token times tokens over bytes of the split.
class TextTask : public Task {
 public:
  // Throws Error for a file that cannot be read or is empty, a training split
  // shorter than one sequence, and an evaluation split without a byte.
  TextTask(const Config& config, DecodeObserver& observer,
           std::shared_ptr<const Tokenizer> tokenizer = nullptr);

  Batch training_batch(int64_t index) const override;
  int64_t evaluation_batches(Split split) const override;
  Batch evaluation_batch(Split split, int64_t index) const override;
  std::string metric_name() const override { return "bits per byte"; }
  double metric_of(double mean_loss) const override;
  double metric_of(double mean_loss, Split split) const override;
  std::shared_ptr<const Tokenizer> tokenizer() const override {
    return tokenizer_;
  }
  SplitSizes sizes() const override {
    return {train_.size, validation_.size, test_.size};
  }
  std::vector<DataIdentity> data() const override;

 private:
  struct Range {
    std::shared_ptr<const Bytes> file;
    int64_t begin = 0;                    // in tokens
    int64_t size = 0;                     // likewise
    int64_t bytes = 0;                    // of the text
    std::shared_ptr<const Bytes> tokens;  // null: bytes are
  };

  void split_files(const TaskConfig& task, DecodeObserver& observer);
  void tokenize(const TaskConfig& task, DecodeObserver& observer);
  void read(const Range& range, int64_t start, std::span<int64_t> out) const;
  const Range& range_of(Split split) const;
  Batch windows(const Range& range, const std::vector<int64_t>& starts) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  Range train_;
  Range validation_;
  Range test_;
  int64_t byte_offset_;
  int64_t batch_;
  int64_t length_;
  int64_t seed_;
  double repeats_;
};

}  // namespace reformer
