// What a seed decides, and what nothing else may.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/model/small_model.h"

namespace reformer {
namespace {

bool same_bits(const Step& a, const Step& b) {
  bool same = a.sums.loss == b.sums.loss;
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    same &= at::equal(a.gradients[i].value, b.gradients[i].value);
  }
  return same;
}

Step step_of_new_model(const Config& config) {
  LanguageModel model(config);
  return step_of(model, random_tokens(config, 1));
}

TEST(Seeds, TheSameGivesTheSameBits) {
  EXPECT_TRUE(same_bits(step_of_new_model(small_config()),
                        step_of_new_model(small_config())));
}

TEST(Seeds, AnotherGivesAnotherModel) {
  auto config = small_config();
  const LanguageModel model(config);
  config.train.seed += 1;
  const LanguageModel other(config);
  EXPECT_FALSE(
      at::equal(model.parameters()[0].value, other.parameters()[0].value));
}

TEST(Seeds, AnotherStepDrawsOtherHashes) {
  auto config = small_config_of("lsh");
  config.model.dropout = 0;
  const auto tokens = random_tokens(config, 1);
  const LanguageModel model(config);
  auto pass = training_pass();
  const auto buckets = buckets_of(model, tokens, pass);
  pass.step += 1;
  EXPECT_FALSE(same_buckets(buckets, buckets_of(model, tokens, pass)));
}

using ByName = std::map<std::string, at::Tensor>;

ByName values_of(const LanguageModel& model) {
  ByName values;
  for (const auto& parameter : model.parameters()) {
    values[parameter.name] = parameter.value.detach();
  }
  return values;
}

TEST(Seeds, EveryMatrixIsDrawnByItself) {
  const auto values = values_of(LanguageModel(small_config_of("lsh")));
  const auto qk = values.at("blocks.0.attention.qk.weight");
  EXPECT_FALSE(at::equal(qk, values.at("blocks.1.attention.qk.weight")));
  EXPECT_FALSE(at::equal(qk, values.at("blocks.0.attention.v.weight")));
}

// Two layers with the same parameters and the same input.
TEST(Seeds, EveryLayerHashesByItself) {
  LanguageModel model(small_config_of("lsh"));
  const auto values = values_of(model);
  values.at("blocks.1.attention.qk.weight")
      .copy_(values.at("blocks.0.attention.qk.weight"));
  const auto x = normal_numbers({1, 50, 24}, 1);
  std::vector<at::Tensor> buckets(2);
  for (int layer = 0; layer < 2; ++layer) {
    model.stack().blocks()[layer].attention.forward(x, training_pass(),
                                                    buckets[layer]);
  }
  EXPECT_FALSE(same_buckets({buckets[0]}, {buckets[1]}));
}

// What each branch of each layer makes of the same input: the zeros in it.
std::vector<at::Tensor> dropped_by(LanguageModel& model, const Pass& pass) {
  const auto x = normal_numbers({1, 50, 24}, 1);
  std::vector<at::Tensor> dropped;
  for (const auto& block : model.stack().blocks()) {
    at::Tensor none;
    dropped.push_back(block.attention.forward(x, pass, none).eq(0));
    dropped.push_back(block.feed_forward.forward(x, pass, 0).eq(0));
  }
  return dropped;
}

TEST(Seeds, EveryBranchOfEveryLayerDropsItsOwnElements) {
  LanguageModel model(small_config_of("full"));
  const auto dropped = dropped_by(model, training_pass());
  for (size_t i = 0; i < dropped.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(at::equal(dropped[i], dropped[j])) << i << " " << j;
    }
  }
}

TEST(Seeds, EveryBranchDropsOtherElementsInAnotherStep) {
  LanguageModel model(small_config_of("full"));
  auto pass = training_pass();
  const auto dropped = dropped_by(model, pass);
  pass.step += 1;
  const auto next = dropped_by(model, pass);
  for (size_t i = 0; i < dropped.size(); ++i) {
    EXPECT_FALSE(at::equal(dropped[i], next[i])) << i;
  }
}

TEST(Seeds, NothingIsDroppedInEvaluation) {
  LanguageModel model(small_config_of("full"));
  for (const auto& dropped : dropped_by(model, evaluation_pass())) {
    EXPECT_FALSE(dropped.any().item<bool>());
  }
}

TEST(Seeds, AParameterDoesNotDependOnWhichOthersThereAre) {
  auto config = small_config_of("lsh");
  const LanguageModel small(config);
  config.model.layers += 3;
  config.model.positions = "sinusoid";
  const auto large = values_of(LanguageModel(config));
  for (const auto& parameter : small.parameters()) {
    if (parameter.name == "positions.weight") continue;
    EXPECT_TRUE(at::equal(parameter.value, large.at(parameter.name)))
        << parameter.name;
  }
}

TEST(Seeds, TheGlobalGeneratorIsNeverTouched) {
  const auto& generator = at::detail::getDefaultCPUGenerator();
  const auto before = generator.get_state();
  step_of_new_model(small_config());
  EXPECT_TRUE(at::equal(before, generator.get_state()));
}

}  // namespace
}  // namespace reformer
