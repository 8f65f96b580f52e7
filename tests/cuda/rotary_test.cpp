#include "reformer/ops/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "tests/support/cases.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

TEST(RotaryCuda, IsTheCpusToRounding) {
  for (const RotaryConfig config :
       {RotaryConfig{0, 32}, {2, 16}, {3, 1}, {0, 5}}) {
    for (const int64_t first : {0, 3'000'000}) {
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        const auto x = normal({2, 4, 333, 64}, 1).to(type);
        const auto at_cpu = at::full({2}, first, at::kLong);
        const auto exact = rotary(x.to(at::kDouble), config, at_cpu);
        const auto found = rotary(x.cuda(), config, at_cpu.cuda()).cpu();
        const double bar = type == at::kFloat ? 4e-6 : 0x1p-6;
        EXPECT_LT(max_error(found, exact), bar)
            << config.pairs << " pairs from " << first;
      }
    }
  }
}

TEST(RotaryCuda, TheGradientTurnsBack) {
  for (const RotaryConfig config :
       {RotaryConfig{1, 16}, {0, 32}, {1, 3}, {2, 32}}) {
    const auto x = by_positions(normal({1, 3, 1000, 64}, 2).cuda());
    x.requires_grad_();
    const auto y = rotary(x, config);
    y.backward(y.detach());
    EXPECT_LT(max_error(x.grad().cpu(), x.detach().cpu()), 2e-6)
        << config.pairs;
  }
}

}  // namespace
}  // namespace reformer
