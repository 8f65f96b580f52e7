// The same bits every time, at the sizes of the configs that people run.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones_like.h>
#include <gtest/gtest.h>

#include "reformer/config/config_library.h"
#include "reformer/model/prediction.h"
#include "reformer/ops/full_attention.h"
#include "reformer/train/learner.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);

// Like bytes of a text: few are most.
at::Tensor uneven_tokens(const Config& config, uint64_t seed) {
  return (normal({batch_rows(config), config.train.length}, seed).pow_(2) * 20)
      .to(at::kLong)
      .remainder(config.model.vocabulary);
}

// Of translation: rows end at different places, sources and targets at others.
Batch uneven_batch(const Config& config, uint64_t seed) {
  const auto tokens = uneven_tokens(config, seed);
  if (config.model.encoder_layers == 0) {
    return {tokens, at::ones_like(tokens, at::kBool)};
  }
  const auto row = at::arange(tokens.size(0)).unsqueeze(1);
  const auto place = at::arange(tokens.size(1)).unsqueeze(0);
  Batch batch;
  batch.tokens = tokens;
  batch.loss_mask = place < tokens.size(1) - row.remainder(7);
  batch.source = uneven_tokens(config, seed + 1'000'000);
  batch.source_mask = place < tokens.size(1) - row.remainder(5);
  return batch;
}

std::vector<at::Tensor> trained(const Config& config, int64_t steps) {
  Learner learner(config, placement_on(kGpu, config.train.precision));
  for (int64_t step = 1; step <= steps; ++step) {
    std::vector<Batch> batches;
    for (int64_t i = 0; i < config.train.accumulate; ++i) {
      batches.push_back(
          uneven_batch(config, static_cast<uint64_t>(100 * step + i)));
    }
    learner.gradients(batches, step);
    learner.apply(step);
  }
  learner.synchronize();
  std::vector<at::Tensor> values;
  for (const auto& parameter : learner.model().parameters()) {
    values.push_back(parameter.value.detach().cpu());
  }
  for (const auto& state : learner.optimizer().state()) {
    values.push_back(state.value.cpu());
  }
  return values;
}

void expect_same_bits_twice(const Config& config, int64_t steps) {
  const auto once = trained(config, steps);
  const auto again = trained(config, steps);
  ASSERT_EQ(once.size(), again.size());
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_TRUE(at::equal(once[i], again[i])) << "tensor " << i;
  }
}

class EveryConfig : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Configs, EveryConfig,
                         testing::ValuesIn(config_names()),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// Four steps, of which the last are a replayed graph where that is worth it.
TEST_P(EveryConfig, GivesTheSameBitsTwice) {
  Config config = load_config(GetParam());
  const int64_t tokens =
      batch_rows(config) * config.train.length * config.train.accumulate;
  expect_same_bits_twice(config, tokens > 200'000 ? 2 : 4);
}

TEST(EveryAttention, GivesTheSameBitsTwice) {
  for (const std::string attention :
       {"lsh", "local", "full_shared_qk", "full"}) {
    for (const std::string block : {"reversible", "stored", "residual"}) {
      for (const std::string precision : {"bfloat16", "float32"}) {
        SCOPED_TRACE(attention + ", " + block + ", " + precision);
        Config config = load_config("figure3");
        config.model.attention = attention;
        config.model.block = block;
        config.train.precision = precision;
        expect_same_bits_twice(config, 3);
      }
    }
  }
}

// Long enough that its kernels share the sum of a query's gradient.
TEST(FullAttentionCuda, HasGradientsOfTheSameBitsEveryTime) {
  for (const auto type : {at::kBFloat16, at::kFloat}) {
    const int64_t length = type == at::kBFloat16 ? 16384 : 4096;
    const auto input = [&](uint64_t seed) {
      return normal({1, 8, length, 64}, seed).cuda().to(type).requires_grad_();
    };
    const auto q = input(1);
    const auto k = input(2);
    const auto v = input(3);
    const auto d_output = input(4).detach();
    std::vector<at::Tensor> once;
    for (int time = 0; time < 6; ++time) {
      for (const auto& x : {q, k, v}) x.mutable_grad().reset();
      full_attention(q, k, v, /*causal=*/true).backward(d_output);
      const std::vector<at::Tensor> now{q.grad(), k.grad(), v.grad()};
      if (once.empty()) once = now;
      for (size_t i = 0; i < now.size(); ++i) {
        EXPECT_TRUE(at::equal(now[i], once[i])) << i << ", time " << time;
      }
    }
  }
}

}  // namespace
}  // namespace reformer
