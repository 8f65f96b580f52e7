// config/config_json: a config as a file, checked, and what it would cost.
#include "reformer/config/config_json.h"

#include "reformer/config/config_library.h"
#include "reformer/model/prediction.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> seeds = {
      "// comment\n{\"model\": {\"layers\": 2}, \"train.steps\": 3}"};
  for (const char* name : {"text", "duplication", "imagenet64"}) {
    seeds.push_back(config_to_json(load_config(name)));
  }
  return seeds;
}

void execute(const std::string& input) {
  const Config config = config_from_json(input, "config.json");
  const std::string once = config_to_json(config);
  law(config_to_json(config_from_json(once, "again")) == once,
      "a config that was read is written and read again as it is");
  check(config);
  law(count_parameters(config).total() > 0, "a model has parameters");
  law(predict_memory(config).peak.total() > 0, "a model takes memory");
  law(predict_flops(config).total() > 0, "a step computes something");
  law(longest_input(config) >= 0 && tokens_per_step(config) > 0,
      "a step has tokens");
}

const Registered registered({"config", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
