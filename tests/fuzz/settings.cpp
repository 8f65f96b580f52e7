// config/config_json: settings as --set takes them, a line each.
#include <sstream>

#include "reformer/config/config_json.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> seeds;
  for (const auto& setting : settings_help()) {
    seeds.push_back(setting.key + "=" + setting.value + "\n");
  }
  return seeds;
}

void execute(const std::string& input) {
  Config config;
  std::istringstream lines(input);
  for (std::string line; std::getline(lines, line);) {
    set_config_value(config, line);
  }
  const std::string once = config_to_json(config);
  law(config_to_json(config_from_json(once, "again")) == once,
      "settings are written and read again as they are");
  check(config);
}

const Registered registered({"settings", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
