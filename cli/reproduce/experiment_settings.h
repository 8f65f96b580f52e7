// What an experiment's runs have in common, and what its folder was begun with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/reproduce/experiment_options.h"
#include "reformer/config/config.h"

namespace reformer::cli {

// In the folder, where a figure measures steps too.
inline constexpr const char* kCostsFile = "costs.jsonl";

struct ExperimentSettings {
  // Of all runs, but for their variant and seed; a text without task.data is
  // synthetic.
  Config config;
  int64_t seeds = 0;
  bool quick = false;
  Lists lists;

  std::vector<int64_t> list(const std::string& name,
                            const std::vector<int64_t>& otherwise) const;
};

// What is asked for, kept in DIR/experiment.json; or, where `options` give no
// settings, what DIR was begun with. Throws Error where DIR was begun with
// others (more or fewer seeds are not), where data is missing, or where --set
// names a key that the figure itself varies.
ExperimentSettings settings_of(const ExperimentOptions& options,
                               const std::vector<std::string>& varied_keys);

}  // namespace reformer::cli
