// The options that the paper's figures share.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/options/command_line.h"

namespace reformer::cli {

// What a figure varies besides the seed: {"layers", {3, 6, 12}}.
using Lists = std::map<std::string, std::vector<int64_t>>;

// What a list may hold, on the command line and in experiment.json.
struct ListRange {
  int64_t least = 0;
  int64_t most = kMaxLength;
};

inline constexpr int64_t kMaxSeeds = 1000;

struct ExperimentOptions {
  std::string name;  // "figure4": of the config, of the numbers, of the plot
  std::string out;
  bool quick = false;
  std::string data;
  int64_t steps = 0;  // 0: the config's
  int64_t seeds = 0;  // 0: 3
  std::vector<std::string> assignments;
  std::string device = "auto";
  int64_t threads = 0;
  Lists lists;  // those given; a figure has defaults for the rest
  std::map<std::string, ListRange> list_ranges;  // of all that it has

  explicit ExperimentOptions(const std::string& figure);

  void add_to(CLI::App& app);

  // Whether anything says how the runs are to be; else a folder's own settings
  // hold.
  bool give_settings() const;
};

}  // namespace reformer::cli
