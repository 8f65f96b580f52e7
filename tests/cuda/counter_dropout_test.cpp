#include "reformer/ops/counter_dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/support/cases.h"

namespace reformer {
namespace {

constexpr DropoutKey kKey{/*seed=*/5, /*step=*/6, /*site=*/7};

TEST(CounterDropoutCuda, IsTheCpusBitForBit) {
  for (const int64_t width : {1, 7, 8, 64, 1001}) {
    for (const double probability : {0.1, 0.5, 0.999}) {
      const auto x = normal({3, 33, width}, width);
      const auto expected = counter_dropout(x, {probability, kKey, 17});
      const auto dropped = counter_dropout(x.cuda(), {probability, kKey, 17});
      EXPECT_TRUE(dropped.cpu().equal(expected)) << width;
    }
  }
}

TEST(CounterDropoutCuda, TreatsSomeExamplesAsAmongAll) {
  const auto x = normal({3, 33, 24}, 1);
  const auto whole = counter_dropout(x, {0.5, kKey});
  auto key = kKey;
  key.first_example = 1;
  const auto part = counter_dropout(x.narrow(0, 1, 2).cuda(), {0.5, key});
  EXPECT_TRUE(part.cpu().equal(whole.narrow(0, 1, 2)));
}

TEST(CounterDropoutCuda, DropsTheSameInBf16) {
  const auto x = normal({2, 100, 64}, 1).to(at::kBFloat16);
  const auto expected = counter_dropout(x.to(at::kFloat), {0.3, kKey});
  const auto dropped = counter_dropout(x.cuda(), {0.3, kKey}).cpu();
  EXPECT_TRUE(dropped.equal(expected.to(at::kBFloat16)));
}

// At the size at which models are trained, too.
TEST(CounterDropoutCuda, AddsAndConvertsWithTheBitsOfItsParts) {
  for (const auto& [length, width] :
       {std::pair<int64_t, int64_t>{33, 7}, {65536, 512}}) {
    const auto x = normal({2, length, width}, 1).cuda();
    const auto sum = normal(x.sizes(), 2).cuda();
    for (const double probability : {0.0, 0.1}) {
      const Dropout dropout{probability, kKey, 5};
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        const auto dropped = counter_dropout(x.to(type), dropout);
        const auto to = at::empty_like(sum);
        add_dropped(to, sum, x.to(type), dropout);
        EXPECT_TRUE(to.equal(sum + dropped));
        EXPECT_TRUE(dropped_as(type, x, dropout).equal(dropped));
        // Parts, which are not contiguous.
        const auto part_of = [&](const at::Tensor& all) {
          return all.narrow(1, 1, all.size(1) - 1);
        };
        const auto part = counter_dropout(part_of(x).to(type), dropout);
        EXPECT_TRUE(dropped_as(type, part_of(x), dropout).equal(part));
        add_dropped(part_of(to), part_of(sum), part_of(x).to(type), dropout);
        EXPECT_TRUE(part_of(to).equal(part_of(sum) + part));
      }
      const auto shorter = x.to(at::kBFloat16);
      EXPECT_TRUE(dropped_as(at::kFloat, shorter, dropout)
                      .equal(counter_dropout(shorter.to(at::kFloat), dropout)));
    }
  }
}

TEST(CounterDropoutCuda, DropsTheSameInTheBackwardPass) {
  const auto x = normal({2, 10, 24}, 2).cuda().set_requires_grad(true);
  const auto y = counter_dropout(x, {0.5, kKey});
  y.sum().backward();
  EXPECT_TRUE(((x.grad() == 0) == (y == 0)).all().item<bool>());
  EXPECT_TRUE((y == 0).any().item<bool>());
}

}  // namespace
}  // namespace reformer
