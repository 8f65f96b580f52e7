#include "reformer/train/rank_facts.h"

#include "reformer/base/hex.h"
#include "reformer/base/parallel.h"
#include "reformer/base/sha256.h"
#include "reformer/data/data_identity.h"
#include "reformer/train/save_run.h"

namespace reformer {
namespace {

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

RankFacts machine_facts(c10::Device device) {
  return {{"the kernels (REFORMER_CPU)", kernels_on(device)},
          {"threads", std::to_string(threads())}};
}

RankFacts rank_facts(const Config& config, const Task& task, c10::Device device,
                     const std::optional<Checkpoint>& checkpoint) {
  RankFacts facts = setting_facts(config);
  for (const auto& data : task.data()) {
    facts.emplace_back("the bytes of " + data.setting,
                       std::to_string(data.bytes));
    facts.emplace_back("the content of " + data.setting, data.hash);
  }
  facts.emplace_back("the tokenizer", hash_of(tokenizer_file(task)));
  for (auto& fact : machine_facts(device)) facts.push_back(std::move(fact));
  facts.emplace_back("the checkpoint", name_of(checkpoint));
  return facts;
}

}  // namespace reformer
