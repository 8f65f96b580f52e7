// Steps that take their numbers of hash rounds in turn (train.rounds).
#include <gtest/gtest.h>

#include "reformer/train/learner.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

Config config_with(const std::vector<int64_t>& in_turn, int64_t rounds) {
  auto config = small_config_of("lsh");
  config.train.rounds = in_turn;
  config.lsh.rounds = rounds;
  return config;
}

Step gradients_of(const Config& config, int64_t step) {
  Learner learner(config, Placement(at::kDouble));
  shake(learner.model(), 0.1);
  const auto tokens = random_tokens(config, 1);
  Step result{learner.gradients({{tokens, all_of(tokens)}}, step).read().sums,
              {}};
  for (const auto& parameter : learner.model().parameters()) {
    result.gradients.push_back({parameter.name, parameter.gradient().clone()});
  }
  return result;
}

TEST(TrainingRounds, AStepIsThatOfItsNumberOfRounds) {
  const std::vector<int64_t> in_turn = {1, 4, 2};
  for (const int64_t step : {3, 4, 5, 9}) {
    const int64_t rounds = in_turn[static_cast<size_t>(step % 3)];
    SCOPED_TRACE("step " + std::to_string(step));
    expect_same_step(gradients_of(config_with(in_turn, 3), step),
                     gradients_of(config_with({}, rounds), step), 1e-12);
  }
}

TEST(TrainingRounds, EvaluationHasTheConfigs) {
  const auto config = config_with({1}, 3);
  LanguageModel model(config, at::kDouble);
  std::vector<at::Tensor> buckets;
  model.outputs(random_tokens(config, 1), evaluation_pass(), &buckets);
  EXPECT_EQ(buckets[0].size(2), 3);
}

}  // namespace
}  // namespace reformer
