#include "cli/eval/eval_facts.h"

#include <string>
#include <vector>

#include "reformer/train/rank_facts.h"

namespace reformer::cli {
namespace {

std::string listed(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) {
    text += (text.empty() ? "" : ",") + std::to_string(number);
  }
  return text;
}

std::string given(bool flag) { return flag ? "given" : ""; }

}  // namespace

RankFacts eval_facts(const EvalOptions& options, const EvaluatedRun& run,
                     c10::Device device) {
  RankFacts facts{{"--split", options.split},
                  {"--rounds", listed(options.rounds)},
                  {"--batches", std::to_string(options.batches)},
                  {"--length", listed(options.lengths)},
                  {"--by-position", given(options.by_position)},
                  {"--recall", listed(options.recall)},
                  {"--beam", std::to_string(options.beam)},
                  {"--length-penalty", std::to_string(options.length_penalty)},
                  {"--our-attention", given(options.our_attention)}};
  for (auto& fact : rank_facts(run.checkpoint.config, *run.sequences[0].task,
                               device, run.checkpoint)) {
    facts.push_back(std::move(fact));
  }
  return facts;
}

}  // namespace reformer::cli
