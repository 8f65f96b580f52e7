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

// Names of what is measured in an evaluation begin so.
inline constexpr char kValidation[] = "validation/";

// Where a run begins or goes on.
struct MetricsStart {
  int64_t step = 0;       // done
  bool evaluated = true;  // false: it will be, again, and has no such line yet
};

// Appends to DIR/metrics.jsonl ({"step": 10, "train/loss": 2.3, ...}) and to a
// TensorBoard event file in DIR, each line at once. JSON has no NaN and no
// infinity: both are written as null. Throws Error, naming the file, where it
// cannot be written.
class MetricsWriter {
 public:
  // Lines of later steps, left by a run that was killed after its last
  // checkpoint, are dropped from metrics.jsonl, and TensorBoard is told to
  // forget them.
  MetricsWriter(const std::string& directory, const MetricsStart& start);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  void write(int64_t step, const Scalars& scalars);

  // For TensorBoard alone, as preformatted text; bytes that are no UTF-8 are
  // replaced.
  void write_text(int64_t step, const std::string& name,
                  const std::string& text);

  // A sentence where the end of metrics.jsonl was no line and is gone now.
  const std::string& cut() const { return cut_; }

 private:
  struct Files;
  std::unique_ptr<Files> files_;
  std::string cut_;
};

struct MetricsLine {
  int64_t step;
  Scalars scalars;
};

// DIR/metrics.jsonl, null read as NaN. A last line that was never finished, and
// zeros or garbage at the end as a loss of power leaves them, are left out.
// Throws Error naming the file and the line at fault, and the remedy.
std::vector<MetricsLine> read_metrics(const std::string& directory);

}  // namespace reformer
