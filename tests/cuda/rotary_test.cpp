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
  const auto x = normal({1, 2, 1000, 64}, 2).cuda().requires_grad_();
  const RotaryConfig config{1, 16};
  const auto y = rotary(x, config);
  y.backward(y.detach());
  EXPECT_LT(max_error(x.grad().cpu(), x.detach().cpu()), 2e-6);
}

}  // namespace
}  // namespace reformer
