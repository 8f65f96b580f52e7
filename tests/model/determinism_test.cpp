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
  return step_of(model, random_symbols(config, 1));
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
  EXPECT_FALSE(at::equal(model.parameters()[0].value,
                         other.parameters()[0].value));
}

TEST(Seeds, AnotherStepDrawsOtherHashesAndDropout) {
  auto config = small_config_of("lsh");
  const auto symbols = random_symbols(config, 1);
  const LanguageModel model(config);
  auto pass = training_pass();
  const auto buckets = buckets_of(model, symbols, pass);
  pass.step += 1;
  EXPECT_FALSE(same_buckets(buckets, buckets_of(model, symbols, pass)));

  config.model.attention = "full";
  const LanguageModel full(config);
  const auto logits = full.logits(symbols, pass);
  pass.step += 1;
  EXPECT_FALSE(at::equal(logits, full.logits(symbols, pass)));
}

TEST(Seeds, LayersDrawTheirOwnHashesAndParameters) {
  auto config = small_config_of("lsh");
  LanguageModel model(config);
  std::map<std::string, at::Tensor> by_name;
  for (const auto& parameter : model.parameters()) {
    by_name[parameter.name] = parameter.value;
  }
  EXPECT_FALSE(at::equal(by_name.at("blocks.0.attention.qk.weight"),
                         by_name.at("blocks.1.attention.qk.weight")));
  EXPECT_FALSE(at::equal(by_name.at("blocks.0.attention.qk.weight"),
                         by_name.at("blocks.0.attention.v.weight")));
}

TEST(Seeds, AParameterDoesNotDependOnWhichOthersThereAre) {
  auto config = small_config_of("lsh");
  const LanguageModel small(config);
  config.model.layers += 3;
  config.model.positions = "sinusoid";
  const LanguageModel large(config);
  std::map<std::string, at::Tensor> by_name;
  for (const auto& parameter : large.parameters()) {
    by_name[parameter.name] = parameter.value;
  }
  for (const auto& parameter : small.parameters()) {
    if (parameter.name == "positions.weight") continue;
    EXPECT_TRUE(at::equal(parameter.value, by_name.at(parameter.name)))
        << parameter.name;
  }
}

TEST(Seeds, TheGlobalGeneratorIsNeverTouched) {
  auto generator = at::detail::getDefaultCPUGenerator();
  const auto before = generator.get_state();
  step_of_new_model(small_config());
  EXPECT_TRUE(at::equal(before, generator.get_state()));
}

}  // namespace
}  // namespace reformer
