#include "cli/reproduce/experiment_settings.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/options/config_options.h"
#include "cli/reproduce/json_numbers.h"
#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/base/json_text.h"
#include "reformer/base/printable.h"
#include "reformer/config/config_json.h"
#include "reformer/config/config_library.h"

namespace reformer::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kSeeds = 3;

fs::path file_of(const ExperimentOptions& options) {
  return fs::path(options.out) / "experiment.json";
}

Json json_of(const std::string& name, const ExperimentSettings& settings) {
  Json json;
  json["experiment"] = name;
  json["seeds"] = settings.seeds;
  json["quick"] = settings.quick;
  json["lists"] = Json::object();
  for (const auto& [key, values] : settings.lists) json["lists"][key] = values;
  json["config"] = Json::parse(config_to_json(settings.config));
  return json;
}

Lists lists_in(const Json& json, const ExperimentOptions& options,
               const std::string& source) {
  Lists lists;
  for (const auto& [key, values] : json.get_ref<const Json::object_t&>()) {
    const std::string name = source + ": lists." + printable(key);
    const auto known = options.list_ranges.find(key);
    const auto [least, most] =
        known == options.list_ranges.end() ? ListRange{} : known->second;
    require(values.is_array() && !values.empty(), name,
            ": a list of whole numbers is required");
    for (const auto& value : values) {
      lists[key].push_back(whole_number_in(value, name, least, most));
    }
  }
  return lists;
}

ExperimentSettings settings_in(const Json& json,
                               const ExperimentOptions& options,
                               const std::string& source) {
  ExperimentSettings settings;
  settings.seeds =
      whole_number_in(json.at("seeds"), source + ": seeds", 1, kMaxSeeds);
  settings.quick = json.at("quick").get<bool>();
  settings.lists = lists_in(json.at("lists"), options, source);
  settings.config = config_from_json(json.at("config").dump(), source);
  check(settings.config);
  return settings;
}

// A run has a folder, as soon as its data could be opened.
bool has_results(const std::string& folder) {
  if (!fs::is_directory(folder)) return false;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() || entry.path().filename() == kCostsFile) {
      return true;
    }
  }
  return false;
}

// Throws what nlohmann-json throws for members that are not there.
Json parsed(const std::string& text) {
  try {
    return parse_json<Json>(text);
  } catch (const JsonError&) {
    return {};
  }
}

// Nothing where the folder has not begun, or came to nothing: a mistake in the
// data's name must not decide the settings.
std::optional<ExperimentSettings> begun_with(const ExperimentOptions& options) {
  if (!has_results(options.out)) return {};
  const std::string path = file_of(options).string();
  if (!std::filesystem::exists(path)) return {};
  const std::string text = read_text(path);
  try {
    const auto json = parsed(text);
    require(json.at("experiment") == options.name, options.out, ": holds ",
            printable(json.at("experiment").get<std::string>()), ", not ",
            options.name, "; choose another --out");
    return settings_in(json, options, path);
  } catch (const Json::exception&) {
    throw Error(path + ": is damaged; remove it, and go on with the options " +
                "that the folder was begun with");
  }
}

// "lsh.rounds" of "lsh.rounds=4".
std::string key_of(const std::string& assignment) {
  return assignment.substr(0, assignment.find('='));
}

void require_not_varied(const ExperimentOptions& options,
                        const std::vector<std::string>& varied_keys) {
  for (const auto& assignment : options.assignments) {
    const std::string key = key_of(assignment);
    require(std::find(varied_keys.begin(), varied_keys.end(), key) ==
                varied_keys.end(),
            "--set ", key, ": ", options.name, " varies it; leave it out");
  }
}

void require_data(const ExperimentOptions& options, const TaskConfig& task) {
  require(!task.data.empty() || task.name == TaskKind::kDuplication ||
              task.name == TaskKind::kRecall ||
              (options.quick && task.name == TaskKind::kText),
          options.name,
          " needs a text: --data PATH names it (--quick makes one of its own)");
  require(task.data != "-", "--data -: ", options.name,
          " reads its text once a run, standard input can be read only once; "
          "give a file");
}

ExperimentSettings asked_for(const ExperimentOptions& options) {
  ExperimentSettings settings;
  Config& config = settings.config;
  config = load_config(options.quick ? "figures-quick" : options.name);
  if (options.steps > 0) config.train.steps = options.steps;
  set_values(config, options.assignments);
  if (!options.data.empty()) config.task.data = options.data;
  require_data(options, config.task);
  make_paths_absolute(config.task);
  require(config.train.minutes == 0, "--set train.minutes: ", options.name,
          " compares runs after as many steps; use --steps");
  settings.quick = options.quick;
  settings.lists = options.lists;
  check(config);
  return settings;
}

void require_seeds_that_fit(const ExperimentSettings& settings) {
  const int64_t most = std::numeric_limits<int64_t>::max() - kMaxSeeds;
  require(settings.config.train.seed <= most, "train.seed: at most ", most,
          " is required, the seeds of further runs follow it; got ",
          settings.config.train.seed);
}

// Seeds aside: more of them are more runs beside those that are there.
bool same(ExperimentSettings one, const ExperimentSettings& other) {
  one.seeds = other.seeds;
  return json_of("", one) == json_of("", other);
}

}  // namespace

std::vector<int64_t> ExperimentSettings::list(
    const std::string& name, const std::vector<int64_t>& otherwise) const {
  const auto given = lists.find(name);
  return given == lists.end() ? otherwise : given->second;
}

ExperimentSettings settings_of(const ExperimentOptions& options,
                               const std::vector<std::string>& varied_keys) {
  require_not_varied(options, varied_keys);
  const auto before = begun_with(options);
  ExperimentSettings settings =
      before && !options.give_settings() ? *before : asked_for(options);
  require(!before || same(settings, *before), options.out,
          ": was begun with other settings (its experiment.json has them); "
          "choose another --out, or give none to go on with its own");
  settings.seeds = options.seeds > 0 ? options.seeds
                   : before          ? before->seeds
                                     : kSeeds;
  require_seeds_that_fit(settings);
  if (!before || before->seeds != settings.seeds) {
    std::error_code fault;
    fs::create_directories(options.out, fault);
    require(!fault, "cannot make the folder ", options.out, ": ",
            fault.message());
    write_file_atomically(file_of(options),
                          json_of(options.name, settings).dump(2) + "\n");
  }
  return settings;
}

}  // namespace reformer::cli
