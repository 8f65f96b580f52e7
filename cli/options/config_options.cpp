#include "cli/options/config_options.h"

#include <filesystem>

#include "cli/process/launched.h"
#include "cli/process/machine.h"
#include "reformer/base/errors.h"
#include "reformer/config/config_json.h"
#include "reformer/config/config_library.h"
#include "reformer/device/device.h"

namespace reformer::cli {
namespace {

std::string known_names() {
  std::string names;
  for (const auto& name : config_names()) {
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

}  // namespace

void add_device_option(CLI::App& app, std::string& device) {
  const auto check = [](const std::string& text) -> std::string {
    if (text == "cpu" || text == "auto" || cuda_index(text)) return "";
    return "cpu or cuda or cuda:N or auto is required, got '" + text + "'";
  };
  app.add_option("--device", device,
                 "cpu, cuda (the first GPU), cuda:N or auto")
      ->check(CLI::Validator(check, ""))
      ->take_last()
      ->type_name("NAME")
      ->capture_default_str();
}

void add_threads_option(CLI::App& app, int64_t& threads) {
  app.add_option("--threads", threads, "threads to use; 0: all there are")
      ->check(whole_number(0, 1024))
      ->take_last()
      ->type_name("N")
      ->capture_default_str();
}

void add_machine_options(CLI::App& app, std::string& device, int64_t& threads) {
  add_device_option(app, device);
  add_threads_option(app, threads);
}

at::Device use_machine(const std::string& device, int64_t threads) {
  use_threads(threads > 0 ? static_cast<int>(threads) : available_threads());
  return choose_device(device);
}

void add_set_option(CLI::App& app, std::vector<std::string>& assignments) {
  const auto check = [](const std::string& text) -> std::string {
    if (text.find('=') != std::string::npos) return "";
    return "key=value is required, got '" + text +
           "'; `reformer settings` lists the keys";
  };
  app.add_option(
         "--set", assignments,
         "a setting of its own: key=value; `reformer settings` lists them")
      ->check(CLI::Validator(check, ""))
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void set_values(Config& config, const std::vector<std::string>& assignments) {
  for (const auto& assignment : assignments) {
    set_config_value(config, assignment);
  }
}

void make_paths_absolute(TaskConfig& task) {
  const auto absolute = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().string();
  };
  const bool pairs = task.name == TaskKind::kTranslation;
  for (auto* path : {&task.data, &task.validation, &task.test, &task.cache,
                     &task.tokenizer}) {
    if (path->empty() || *path == "-") continue;
    const size_t comma = path->find(',');
    // Two files, unless one of that name is there.
    const bool two =
        pairs && comma != std::string::npos && !std::filesystem::exists(*path);
    *path = two ? absolute(path->substr(0, comma)) + "," +
                      absolute(path->substr(comma + 1))
                : absolute(*path);
  }
}

void ConfigOptions::add_to(CLI::App& app) {
  app.add_option("CONFIG", name, "a JSON file, or one of: " + known_names());
  add_set_option(app, assignments);
  add_machine_options(app, device, threads);
}

Config ConfigOptions::load() const {
  require(!name.empty(),
          "a CONFIG is required: a JSON file, or one of: ", known_names());
  Config config = load_config(name);
  set_values(config, assignments);
  return config;
}

at::Device ConfigOptions::use_machine() const {
  return cli::use_machine(device, threads);
}

at::Device ConfigOptions::use_machine_of_rank() const {
  return cli::use_machine(device_of_rank(device), threads_of_rank(threads));
}

}  // namespace reformer::cli
