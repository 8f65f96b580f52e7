#include "reformer/train/rank_facts.h"

#include "reformer/base/hex.h"
#include "reformer/base/parallel.h"
#include "reformer/base/sha256.h"
#include "reformer/config/config_json.h"
#include "reformer/data/data_identity.h"
#include "reformer/train/save_run.h"

namespace reformer {
namespace {

// Each machine may have its data in another place; what is in them is compared.
bool is_path(const std::string& key) {
  return key == "task.data" || key == "task.validation" || key == "task.test" ||
         key == "task.cache" || key == "task.tokenizer";
}

std::string hash_of(const std::string& text) {
  if (text.empty()) return text;
  Sha256 hash;
  hash.add(text);
  return hex(hash.finish());
}

// Two runs of one step are told apart by their time.
std::string name_of(const std::optional<Checkpoint>& checkpoint) {
  if (!checkpoint) return "";
  return "step " + std::to_string(checkpoint->step) + " after " +
         std::to_string(checkpoint->seconds) + " s";
}

}  // namespace

RankFacts rank_facts(const Config& config, const Task& task, c10::Device device,
                     const std::optional<Checkpoint>& checkpoint) {
  RankFacts facts;
  for (const auto& setting : settings_help(config)) {
    if (!is_path(setting.key)) facts.emplace_back(setting.key, setting.value);
  }
  for (const auto& data : task.data()) {
    facts.emplace_back("the bytes of " + data.setting,
                       std::to_string(data.bytes));
    facts.emplace_back("the content of " + data.setting, data.hash);
  }
  facts.emplace_back("the tokenizer", hash_of(tokenizer_file(task)));
  facts.emplace_back("the kernels (REFORMER_CPU)", kernels_on(device));
  facts.emplace_back("threads", std::to_string(threads()));
  facts.emplace_back("the checkpoint", name_of(checkpoint));
  return facts;
}

}  // namespace reformer
