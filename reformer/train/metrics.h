// What a run writes about itself: JSON lines, TensorBoard events, and progress
// for people.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reformer {

// Named numbers of one step, in the order to write: {"train/loss", 2.3}, ...
using Scalars = std::vector<std::pair<std::string, double>>;

// Appends to DIR/metrics.jsonl ({"step": 10, "train/loss": 2.3, ...}) and to a
// TensorBoard event file in DIR, each line at once. JSON has no NaN and no
// infinity: both are written as null. Throws Error, naming the file, where it
// cannot be written.
class MetricsWriter {
 public:
  // `resume_step`: lines of later steps, left by a run that was killed after
  // its last checkpoint, are dropped from metrics.jsonl, and TensorBoard is
  // told to forget them.
  MetricsWriter(const std::string& directory, int64_t resume_step);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  void write(int64_t step, const Scalars& scalars);

 private:
  struct Files;
  std::unique_ptr<Files> files_;
};

struct MetricsLine {
  int64_t step;
  Scalars scalars;
};

// DIR/metrics.jsonl, null read as NaN. A last line that was never finished is
// left out. Throws Error naming the file and the line at fault.
std::vector<MetricsLine> read_metrics(const std::string& directory);

}  // namespace reformer
