// Backward passes that are written out against automatic differentiation:
// inputs rebuilt or activations kept, the gradients are the same but for
// rounding.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "reformer/base/errors.h"
#include "reformer/device/memory_meter.h"
#include "tests/model/autograd_step.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

// block, attention, variant: learned positions, rotary ones with successor
// values and n-grams, the same with heads that do not hash, and with short
// convolutions
using Case = std::tuple<std::string, std::string, std::string>;

class Gradients : public testing::TestWithParam<Case> {
 protected:
  static Config config() {
    auto config = small_config_of(std::get<1>(GetParam()));
    config.model.block = std::get<0>(GetParam());
    const auto& variant = std::get<2>(GetParam());
    config.model.positions = variant == "learned" ? "learned" : "rotary";
    if (variant == "convolved") config.model.short_convolution = 4;
    if (variant == "near_heads") {
      config.lsh.hashed_heads = HashedHeads::kSuccessor;
      config.lsh.ngrams = {2, 4};
    }
    if (config.model.positions == PositionKind::kRotary) {
      config.model.successor_fraction = 0.5;
      config.model.ngram_length = 4;
      config.model.ngram_rows = 23;
    }
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Stacks, Gradients,
    testing::Combine(testing::Values("reversible", "stored", "residual"),
                     testing::Values("lsh,local,full,full_shared_qk", "lsh",
                                     "local", "full", "full_shared_qk"),
                     testing::Values("learned", "rotary", "near_heads",
                                     "convolved")),
    [](const auto& instance) {
      auto name = std::get<0>(instance.param) + "_" +
                  std::get<1>(instance.param) + "_" +
                  std::get<2>(instance.param);
      std::replace(name.begin(), name.end(), ',', '_');
      return name;
    });

// In the order of the model's parameters, of the mean loss.
std::vector<at::Tensor> written_out(LanguageModel& model,
                                    const at::Tensor& tokens) {
  std::vector<at::Tensor> gradients;
  for (const auto& [name, gradient] : step_of(model, tokens).gradients) {
    gradients.push_back(gradient);
  }
  return gradients;
}

std::vector<at::Tensor> by_autograd(const LanguageModel& model,
                                    const at::Tensor& tokens) {
  return autograd_gradients(model, tokens, training_pass(),
                            1.0 / double(tokens.numel()));
}

void expect_autograds(const Config& config, double most) {
  LanguageModel model(config, at::kDouble);
  shake(model, 0.05);
  const auto tokens = random_tokens(config, 1);
  const auto expected = by_autograd(model, tokens);
  const auto found = written_out(model, tokens);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LE(relative_error(found[i], expected[i]), most)
        << model.parameters()[i].name;
  }
}

TEST_P(Gradients, AreAutogradsInFloat64) { expect_autograds(config(), 1e-9); }

// Without dropout the feed-forward takes all positions of the batch as one
// sequence, and the attention's output is added by its product.
TEST_P(Gradients, AreAutogradsWithoutDropout) {
  for (const char* activation : {"gelu", "relu", "relu_squared"}) {
    auto changed = config();
    changed.model.dropout = 0;
    changed.model.activation = activation;
    expect_autograds(changed, 1e-9);
  }
}

// The tolerance of fast code: the error may be twice that of autograd in the
// same precision. The float64 model has the same parameters and buckets.
TEST_P(Gradients, AreAsExactAsAutogradsInFloat32) {
  LanguageModel model(config());
  shake(model, 0.05);
  LanguageModel reference(config(), at::kDouble);
  copy_parameters(model, reference);
  const auto tokens = random_tokens(config(), 1);
  ASSERT_TRUE(same_buckets(buckets_of(model, tokens, training_pass()),
                           buckets_of(reference, tokens, training_pass())));

  const auto slow = by_autograd(model, tokens);
  const auto fast = written_out(model, tokens);
  const auto exact = by_autograd(reference, tokens);
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_LE(relative_error(fast[i], exact[i]),
              2 * relative_error(slow[i], exact[i]) + 8 * 0x1p-23)
        << model.parameters()[i].name;
  }
}

// What a step keeps is gone after it, gradients aside.
TEST_P(Gradients, AreAllThatAStepLeaves) {
  const auto tokens = random_tokens(config(), 1);
  const auto loss_mask = all_of(tokens);
  LanguageModel model(config());
  model.train(tokens, loss_mask, training_pass(), 1);
  const MemoryMeter meter;
  model.train(tokens, loss_mask, training_pass(), 1);
  EXPECT_GT(meter.peak_bytes(), 0);
  EXPECT_EQ(meter.in_use_bytes(), 0);
}

// A second one gives the same, and adds.
TEST_P(Gradients, OfASecondStepAddUp) {
  LanguageModel model(config(), at::kDouble);
  shake(model, 0.05);
  const auto tokens = random_tokens(config(), 1);
  const auto step = [&] {
    model.train(tokens, all_of(tokens), training_pass(), 1);
  };
  step();
  std::vector<at::Tensor> once;
  for (const auto& parameter : model.parameters()) {
    once.push_back(parameter.gradient().clone());
  }
  step();
  for (size_t i = 0; i < once.size(); ++i) {
    const auto& parameter = model.parameters()[i];
    EXPECT_LE(relative_error(parameter.gradient(), once[i] * 2), 1e-12)
        << parameter.name;
  }
}

TEST(StoredStack, ABackwardPassTakesAForwardPassBeforeIt) {
  auto config = small_config();
  config.model.block = "stored";
  LanguageModel model(config);
  const auto streams = [&] {
    const std::vector<int64_t> sizes = {2, 66, config.model.d_model};
    return Streams{normal_numbers(sizes, 1), normal_numbers(sizes, 2)};
  };
  EXPECT_THROW(model.stack().backward(streams(), streams()), Error);
  model.stack().forward(streams(), training_pass());
  model.stack().backward(streams(), streams());
  EXPECT_THROW(model.stack().backward(streams(), streams()), Error);
}

}  // namespace
}  // namespace reformer
