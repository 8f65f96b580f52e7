// The options of commands that start from a config.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options/command_line.h"
#include "reformer/config/config.h"

namespace reformer::cli {

struct ConfigOptions {
  std::string name;                      // a bare name or a file
  std::vector<std::string> assignments;  // --set key=value
  std::string device = "auto";
  int64_t threads = 0;  // 0: all that there are

  void add_to(CLI::App& app);

  // The config with the assignments applied; not checked yet.
  Config load() const;

  // Threads and device.
  at::Device use_machine() const;

  // The same of a rank, where a launcher started this process.
  at::Device use_machine_of_rank() const;
};

// --set key=value alone, for commands that have their config; and what it asks.
void add_set_option(CLI::App& app, std::vector<std::string>& assignments);
void set_values(Config& config, const std::vector<std::string>& assignments);

// What task.data, validation, test and cache name, from any folder: for runs
// that are gone on with later.
void make_paths_absolute(TaskConfig& task);

// --device: a name that choose_device takes.
void add_device_option(CLI::App& app, std::string& device);

// --threads: a number that use_machine takes.
void add_threads_option(CLI::App& app, int64_t& threads);

// --device and --threads alone, for commands that start from a run.
void add_machine_options(CLI::App& app, std::string& device, int64_t& threads);
at::Device use_machine(const std::string& device, int64_t threads);

}  // namespace reformer::cli
