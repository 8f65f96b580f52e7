// Batches that make one step together are the batch that they are cut from.
#include <gtest/gtest.h>

#include "reformer/train/learner.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

constexpr int64_t kExamples = 8;
constexpr int64_t kStep = 3;

Config config_of(const std::string& block) {
  auto config = small_config_of("lsh");
  config.model.block = block;
  config.model.dropout = 0.3;
  config.train.batch = kExamples;
  config.train.clip = 0;
  config.train.optimizer = "adam";
  return config;
}

std::vector<Batch> cut(const at::Tensor& tokens,
                       const std::vector<int64_t>& sizes) {
  std::vector<Batch> batches;
  for (const auto& part : tokens.split_with_sizes(sizes)) {
    batches.push_back({part, all_of(part)});
  }
  return batches;
}

// Gradients of a step of kExamples, in batches of `sizes` examples.
Step step_in_batches(const Config& config, const std::vector<int64_t>& sizes) {
  Learner learner(config, Placement(at::kDouble));
  shake(learner.model(), 0.1);
  const auto batches = cut(random_tokens(config, 1), sizes);
  Step step{learner.gradients(batches, kStep).read().sums, {}};
  for (const auto& parameter : learner.model().parameters()) {
    step.gradients.push_back({parameter.name, parameter.gradient().clone()});
  }
  return step;
}

TEST(Accumulation, AStepIsTheSameHoweverItIsCutIntoBatches) {
  for (const auto* block : {"reversible", "stored", "residual"}) {
    SCOPED_TRACE(block);
    const auto config = config_of(block);
    const auto whole = step_in_batches(config, {kExamples});
    expect_same_step(step_in_batches(config, {4, 4}), whole, 1e-11);
    expect_same_step(
        step_in_batches(config, std::vector<int64_t>(kExamples, 1)), whole,
        1e-11);
  }
}

}  // namespace
}  // namespace reformer
