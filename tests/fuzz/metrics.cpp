// io/metrics: metrics.jsonl read, taken up at a step, and read again.
#include "reformer/io/metrics.h"

#include <algorithm>
#include <filesystem>

#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> seeds() {
  return {"{\"step\":1,\"train/loss\":2.5}\n{\"step\":2,\"x\":null}\n",
          "{\"step\":9,\"validation/loss\":1e-3}\n{\"step\":10",
          std::string("{\"step\":3}\n\0\0\0\0", 15)};
}

// Of the last step but one, so that a line is dropped.
int64_t resume_step(const std::vector<MetricsLine>& lines) {
  return lines.size() < 2 ? 0 : lines[lines.size() - 2].step;
}

void remove_events(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != "metrics.jsonl") fs::remove(entry.path());
  }
}

void execute(const std::string& input) {
  const std::string folder = scratch_folder("metrics");
  put_file(folder + "/metrics.jsonl", input);
  const auto lines = read_metrics(folder);
  const int64_t step = resume_step(lines);
  MetricsWriter(folder, {step}).write(step, {{"new", 1}});
  remove_events(folder);
  const auto kept =
      std::count_if(lines.begin(), lines.end(),
                    [&](const auto& line) { return line.step <= step; });
  const auto again = read_metrics(folder);
  law(std::ssize(again) == kept + 1,
      "what was before the step stays, and one line is new");
  law(again.back().step == step && again.back().scalars.size() == 1 &&
          again.back().scalars[0].first == "new",
      "the new line is the last");
}

const Registered registered({"metrics", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
