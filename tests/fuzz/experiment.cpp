// cli/reproduce/experiment_settings: the experiment.json of a folder that was
// begun.
#include <filesystem>

#include "cli/reproduce/experiment_settings.h"
#include "reformer/config/config_json.h"
#include "reformer/config/config_library.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

constexpr char kName[] = "figure4";

std::vector<std::string> seeds() {
  const std::string start = R"({"experiment": "figure4", "seeds": 3, )";
  const std::string config =
      R"("config": )" + config_to_json(load_config(kName)) + "}";
  return {start + R"("quick": false, "lists": {}, )" + config,
          start + R"("quick": true, "lists": {"rounds": [1, 2]}, )" + config};
}

void execute(const std::string& input) {
  const std::string folder = scratch_folder("experiment");
  std::filesystem::create_directory(folder + "/a-run");  // it was begun
  put_file(folder + "/experiment.json", input);
  cli::ExperimentOptions options(kName);
  options.out = folder;
  const auto settings = cli::settings_of(options, {});
  law(settings.seeds >= 1, "an experiment has a run");
  check(settings.config);
  const auto again = cli::settings_of(options, {});
  law(again.seeds == settings.seeds && again.lists == settings.lists,
      "settings stay what they are");
}

const Registered registered({"experiment", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
