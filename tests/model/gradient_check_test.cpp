// The gradients of the whole model against finite differences.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "tests/model/small_model.h"

namespace reformer {
namespace {

struct Case {
  const char* name;
  const char* attention;
  const char* block;
  const char* positions;
  double successor_fraction = 0;
  int64_t short_convolution = 0;
};

class GradientCheck : public testing::TestWithParam<Case> {
 protected:
  static Config config() {
    auto config = small_config_of(GetParam().attention);
    config.model.layers = 2;
    config.model.block = GetParam().block;
    config.model.positions = GetParam().positions;
    config.model.successor_fraction = GetParam().successor_fraction;
    config.model.short_convolution = GetParam().short_convolution;
    config.model.axial_shape = {4, 5, 2};
    config.model.axial_dims = {8, 10, 6};
    config.train.length = 34;
    if (config.model.attention.contains(AttentionKind::kLshHuggingface)) {
      config.model.activation = "gelu_erf";
      config.model.norm_epsilon = 0.5;
      config.model.local_chunk_length = 5;
    }
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Models, GradientCheck,
    testing::Values(
        Case{"lsh", "lsh", "reversible", "learned"},
        Case{"full_shared_qk", "full_shared_qk", "reversible", "axial"},
        Case{"local_full", "local,full", "reversible", "learned"},
        Case{"stored", "lsh", "stored", "sinusoid"},
        Case{"residual", "lsh,full", "residual", "axial"},
        Case{"successors", "lsh,full_shared_qk", "reversible", "learned", 0.5},
        Case{"rotary", "local,full", "reversible", "rotary", 0.5},
        Case{"convolved", "lsh,full", "reversible", "rotary", 0.5, 3},
        Case{"huggingface", "local_separate_qk,lsh_huggingface", "reversible",
             "axial"},
        Case{"huggingface_stored", "lsh_huggingface", "stored", "learned"}),
    [](const auto& instance) { return instance.param.name; });

// Along a random direction of each parameter in turn. The loss is smooth only
// while no bucket changes, so it is checked that none does.
TEST_P(GradientCheck, EveryParameterAgreesWithFiniteDifferences) {
  constexpr double kStep = 1e-6;
  LanguageModel model(config(), at::kDouble);
  shake(model, 0.1);
  const auto tokens = random_tokens(config(), 2);
  const auto loss_mask = all_of(tokens);
  const double count = double(tokens.numel());
  const auto step = step_of(model, tokens);
  const auto buckets = buckets_of(model, tokens, training_pass());
  const at::NoGradGuard no_grad;
  const auto loss_at = [&](const at::Tensor& value, const at::Tensor& before,
                           const at::Tensor& direction, double size) {
    value.copy_(before + direction * size);
    EXPECT_TRUE(
        same_buckets(buckets, buckets_of(model, tokens, training_pass())));
    return model.evaluate(tokens, loss_mask, training_pass()).loss / count;
  };
  for (size_t i = 0; i < step.gradients.size(); ++i) {
    const auto& [name, gradient] = step.gradients[i];
    const auto& value = model.parameters()[i].value;
    const auto before = value.clone();
    const auto direction = normal_numbers(value.sizes(), i, at::kDouble);
    const double above = loss_at(value, before, direction, kStep);
    const double below = loss_at(value, before, direction, -kStep);
    value.copy_(before);
    const double slope = (above - below) / (2 * kStep);
    const double expected = (gradient * direction).sum().item<double>();
    const double size = gradient.norm().item<double>();
    EXPECT_GT(size, 0) << name;
    EXPECT_NEAR(slope, expected, 1e-6 * size + 1e-9) << name;
  }
}

}  // namespace
}  // namespace reformer
