#include "reformer/ops/short_convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "reformer/base/errors.h"
#include "reformer/base/parallel.h"
#include "tests/support/cases.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

// By shifted copies.
at::Tensor plainly(const at::Tensor& x, const at::Tensor& weight) {
  auto y = x;
  for (int64_t t = 1; t <= weight.size(0); ++t) {
    const auto shifted =
        at::constant_pad_nd(x, {0, 0, t, 0}).narrow(2, 0, x.size(2));
    y = y + shifted * weight[t - 1].unsqueeze(1);
  }
  return y;
}

struct Problem {
  at::Tensor x;
  at::Tensor weight;

  Problem(at::IntArrayRef sizes, int64_t taps, at::ScalarType type)
      : x(normal(sizes, 1).to(type).requires_grad_()),
        weight(
            normal({taps, sizes[1], sizes[3]}, 2).to(type).requires_grad_()) {}
};

TEST(ShortConvolution, MixesEachPositionWithTheFewBeforeIt) {
  for (const int64_t taps : {1, 2, 3, 4}) {
    for (const int64_t length : {1, 3, 257, 1000}) {
      const Problem p({2, 3, length, 9}, taps, at::kDouble);
      const auto exact = plainly(p.x, p.weight);
      EXPECT_LT(max_error(short_convolution(p.x, p.weight), exact), 1e-12)
          << taps << " taps, " << length << " positions";
      EXPECT_LT(max_error(short_convolution(p.x.to(at::kFloat),
                                            p.weight.to(at::kFloat)),
                          exact),
                1e-5);
    }
  }
}

TEST(ShortConvolution, GradientsAreThoseOfShiftedCopies) {
  for (const int64_t length : {2, 70, 1000}) {
    const Problem p({2, 3, length, 9}, 3, at::kDouble);
    const auto d = normal(p.x.sizes(), 3).to(at::kDouble);
    short_convolution(by_positions(p.x), p.weight).backward(d);
    const Problem same({2, 3, length, 9}, 3, at::kDouble);
    plainly(same.x, same.weight).backward(d);
    EXPECT_LT(max_error(p.x.grad(), same.x.grad()), 1e-12);
    EXPECT_LT(max_error(p.weight.grad(), same.weight.grad()), 1e-10);
  }
}

TEST(ShortConvolution, TheNumberOfThreadsChangesNoBit) {
  const auto gradient = [](int threads) {
    const int before = reformer::threads();
    set_threads(threads);
    const Problem p({1, 2, 5000, 16}, 4, at::kFloat);
    const auto y = short_convolution(p.x, p.weight);
    y.backward(y.detach());
    set_threads(before);
    return p.weight.grad();
  };
  EXPECT_TRUE(same_bits(gradient(1), gradient(3)));
}

TEST(ShortConvolution, PositionByPositionIsTheWhole) {
  for (const int64_t taps : {1, 4}) {
    const Problem p({3, 2, 20, 11}, taps, at::kDouble);
    const auto x = p.x.detach();
    const auto weight = p.weight.detach();
    const auto whole = short_convolution(x, weight);
    const auto recent = at::zeros({3, 2, taps, 11}, x.options());
    for (int64_t i = 0; i < 20; ++i) {
      const auto next = next_convolution(x.narrow(2, i, 1), weight, recent);
      EXPECT_LT(max_error(next, whole.narrow(2, i, 1)), 1e-12) << i;
    }
    EXPECT_TRUE(same_bits(recent.select(2, 0), x.select(2, 19)));
  }
}

TEST(ShortConvolution, RefusesWhatDoesNotFit) {
  const auto x = normal({2, 3, 5, 8}, 1);
  const auto refuses = [&](const at::Tensor& weight) {
    EXPECT_THROW(short_convolution(x, weight), Error) << weight.sizes();
  };
  refuses(normal({5, 3, 8}, 2));
  refuses(normal({0, 3, 8}, 2));
  refuses(normal({2, 2, 8}, 2));
  refuses(normal({2, 3, 9}, 2));
  refuses(normal({2, 3, 8}, 2).to(at::kDouble));
  const auto weight = normal({2, 3, 8}, 2);
  const auto next = x.narrow(2, 0, 1);
  EXPECT_THROW(next_convolution(next, weight, normal({2, 3, 3, 8}, 1)), Error);
  EXPECT_THROW(next_convolution(x, weight, normal({2, 3, 2, 8}, 1)), Error);
}

}  // namespace
}  // namespace reformer
