#include "reformer/train/metrics.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reformer/core/atomic_file.h"
#include "reformer/core/errors.h"
#include "reformer/core/json_text.h"
#include "reformer/train/append_file.h"
#include "reformer/train/tensorboard.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// --- Lines -------------------------------------------------------------------

std::string metrics_path(const std::string& directory) {
  return (fs::path(directory) / "metrics.jsonl").string();
}

std::string line_of(int64_t step, const Scalars& scalars) {
  Json line;
  line["step"] = step;
  for (const auto& [name, value] : scalars) line[name] = value;
  return line.dump() + "\n";
}

MetricsLine parse_line(const std::string& text) {
  const auto json = parse_json<Json>(text);
  MetricsLine line = {json.at("step").get<int64_t>(), {}};
  for (const auto& [name, value] : json.items()) {
    if (name == "step") continue;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    line.scalars.emplace_back(name,
                              value.is_null() ? nan : value.get<double>());
  }
  return line;
}

struct ReadLine {
  std::string text;
  MetricsLine parsed;
};

std::vector<ReadLine> read_lines(const std::string& path) {
  std::ifstream file(path);
  require(file.is_open(), "cannot read ", path, ": ", std::strerror(errno));
  std::vector<ReadLine> lines;
  std::string text;
  // A last line without an end is one that a killed run did not finish.
  while (std::getline(file, text) && !file.eof()) {
    try {
      lines.push_back({text, parse_line(text)});
    } catch (const std::exception&) {
      throw Error(path + ", line " + std::to_string(lines.size() + 1) +
                  ": an object of a step and its numbers is required");
    }
  }
  return lines;
}

// --- Taking up a run
// -----------------------------------------------------------

void drop_lines_after(const std::string& path, int64_t step) {
  if (!fs::exists(path)) return;
  std::string kept;
  for (const auto& [text, line] : read_lines(path)) {
    if (line.step <= step) kept += text + "\n";
  }
  if (kept.size() != fs::file_size(path)) write_file_atomically(path, kept);
}

// --- TensorBoard
// ---------------------------------------------------------------

double now() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

// TensorBoard reads a folder's files in the order of their names, and leaves
// one for good when a later one is there: time comes first in the name.
std::string new_events_path(const std::string& directory, double time) {
  std::ostringstream name;
  name << "events.out.tfevents." << static_cast<int64_t>(time) << "."
       << host_name() << "." << getpid() << ".";
  const std::string start = (fs::path(directory) / name.str()).string();
  int copy = 0;
  while (fs::exists(start + std::to_string(copy))) ++copy;
  return start + std::to_string(copy);
}

}  // namespace

struct MetricsWriter::Files {
  AppendFile lines;
  AppendFile events;
};

MetricsWriter::MetricsWriter(const std::string& directory,
                             int64_t resume_step) {
  const std::string path = metrics_path(directory);
  drop_lines_after(path, resume_step);
  const double time = now();
  files_.reset(new Files{
      {path, AppendFile::Mode::kContinue},
      {new_events_path(directory, time), AppendFile::Mode::kCreateNew}});
  files_->events.append(tensorboard_version_record(time));
  files_->events.append(tensorboard_restart_record(time, resume_step + 1));
}

MetricsWriter::~MetricsWriter() = default;

void MetricsWriter::write(int64_t step, const Scalars& scalars) {
  files_->lines.append(line_of(step, scalars));
  files_->events.append(tensorboard_scalars_record(now(), step, scalars));
}

std::vector<MetricsLine> read_metrics(const std::string& directory) {
  std::vector<MetricsLine> lines;
  for (auto& line : read_lines(metrics_path(directory))) {
    lines.push_back(std::move(line.parsed));
  }
  return lines;
}

}  // namespace reformer
