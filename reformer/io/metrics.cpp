#include "reformer/io/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "reformer/base/append_file.h"
#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/base/host_name.h"
#include "reformer/base/input_file.h"
#include "reformer/base/json_text.h"
#include "reformer/base/printable.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/tensorboard.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string metrics_path(const std::string& directory) {
  return (fs::path(directory) / kMetricsFile).string();
}

std::string line_of(int64_t step, const Scalars& scalars) {
  Json line;
  line["step"] = step;
  for (const auto& [name, value] : scalars) line[name] = value;
  return line.dump() + "\n";
}

// JSON, but not a step and its numbers.
class WrongLine : public std::exception {};

int64_t step_of(const Json& json) {
  const auto step = json.find("step");
  const bool whole = step != json.end() && step->is_number_integer();
  const int64_t value = whole ? step->get<int64_t>() : -1;
  if (value < 0) throw WrongLine();  // or beyond 2^63
  return value;
}

MetricsLine line_of(const Json& json) {
  if (!json.is_object()) throw WrongLine();
  MetricsLine line = {step_of(json), {}};
  for (const auto& [name, value] : json.items()) {
    if (name == "step") continue;
    if (!value.is_number() && !value.is_null()) throw WrongLine();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    line.scalars.emplace_back(name,
                              value.is_null() ? nan : value.get<double>());
  }
  return line;
}

// Nothing where the text is no JSON at all; what looks like a whole object,
// with a number beyond all bounds or a key twice, somebody wrote.
std::optional<MetricsLine> parse_line(const std::string& text) {
  try {
    return line_of(parse_json<Json>(text));
  } catch (const JsonError&) {
    if (text.starts_with('{') && text.ends_with('}')) throw WrongLine();
    return {};
  }
}

struct ReadLine {
  std::string text;
  MetricsLine parsed;
};

struct ReadLines {
  std::vector<ReadLine> lines;
  size_t tail = 0;  // bytes after the last line that is one
};

// A last line without an end is one that a killed run did not finish; a loss of
// power leaves zeros or what was on the disk before. Both are at the end. What
// has good lines after it was written by somebody, and is an error.
ReadLines read_lines(const std::string& path) {
  require(fs::exists(path), "cannot read ", path, ": ", std::strerror(ENOENT));
  const std::string all = read_text(path);
  ReadLines read;
  size_t good_end = 0;
  size_t number = 0;
  size_t first_broken = 0;
  const auto require_line = [&](bool holds, size_t line) {
    require(holds, path, ", line ", line,
            ": an object of a step and its numbers is required; mend or remove "
            "the line");
  };
  for (size_t begin = 0, end; (end = all.find('\n', begin)) != all.npos;
       begin = end + 1) {
    ++number;
    std::string text = all.substr(begin, end - begin);
    try {
      auto line = parse_line(text);
      if (!line && first_broken == 0) first_broken = number;
      if (!line) continue;
      require_line(first_broken == 0, first_broken);
      read.lines.push_back({std::move(text), std::move(*line)});
      good_end = end + 1;
    } catch (const WrongLine&) {
      require_line(false, number);
    }
  }
  read.tail = all.size() - good_end;
  return read;
}

bool is_evaluation(const MetricsLine& line) {
  return std::any_of(
      line.scalars.begin(), line.scalars.end(),
      [](const auto& scalar) { return scalar.first.starts_with(kValidation); });
}

// What was no line at the end, in words; empty where there was none.
std::string drop_lines_after(const std::string& path,
                             const MetricsStart& start) {
  if (!fs::exists(path)) return "";
  const auto [lines, tail] = read_lines(path);
  std::string kept;
  for (const auto& [text, line] : lines) {
    const bool again =
        line.step == start.step && !start.evaluated && is_evaluation(line);
    if (line.step <= start.step && !again) kept += text + "\n";
  }
  if (kept.size() != fs::file_size(path)) write_file_atomically(path, kept);
  if (tail == 0) return "";
  return path + ": its last " + std::to_string(tail) +
         " bytes are no line of a run, as a kill or a loss of power leaves "
         "them, and were cut";
}

double now() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
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
                             const MetricsStart& start) {
  const std::string path = metrics_path(directory);
  cut_ = drop_lines_after(path, start);
  const double time = now();
  files_.reset(new Files{
      {path, AppendFile::Mode::kContinue},
      {new_events_path(directory, time), AppendFile::Mode::kCreateNew}});
  files_->events.append(tensorboard_version_record(time));
  files_->events.append(tensorboard_restart_record(time, start.step + 1));
}

MetricsWriter::~MetricsWriter() = default;

void MetricsWriter::write(int64_t step, const Scalars& scalars) {
  files_->lines.append(line_of(step, scalars));
  files_->events.append(tensorboard_scalars_record(now(), step, scalars));
}

void MetricsWriter::write_text(int64_t step, const std::string& name,
                               const std::string& text) {
  constexpr std::string_view kCode = "    ";  // Markdown's
  files_->events.append(
      tensorboard_text_record(now(), step, name, printable_lines(text, kCode)));
}

std::vector<MetricsLine> read_metrics(const std::string& directory) {
  std::vector<MetricsLine> lines;
  for (auto& line : read_lines(metrics_path(directory)).lines) {
    lines.push_back(std::move(line.parsed));
  }
  return lines;
}

}  // namespace reformer
