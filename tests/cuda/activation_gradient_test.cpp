#include "reformer/ops/activation_gradient.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/threshold_backward.h>
#include <gtest/gtest.h>

#include "tests/support/cases.h"

namespace reformer {
namespace {

struct Gradients {
  at::Tensor d;
  at::Tensor sums;
};

at::Tensor rounded(const at::Tensor& x) { return x.cuda().to(at::kBFloat16); }

Gradients ours(const at::Tensor& d, const at::Tensor& x,
               const at::Tensor& before,
               Activation activation = Activation::kGelu) {
  const Gradients found{d.clone(), before.clone()};
  activation_gradient(found.d, x, found.sums, activation);
  return found;
}

at::Tensor plain_gradient(const at::Tensor& d, const at::Tensor& x,
                          Activation activation) {
  if (activation == Activation::kNone) return d;
  if (activation == Activation::kRelu) return at::threshold_backward(d, x, 0);
  if (activation == Activation::kReluSquared) return d * x.sqrt() * 2;
  return at::gelu_backward(d, x,
                           activation == Activation::kGelu ? "tanh" : "none");
}

// LibTorch's operations, in the type of d.
Gradients plain(const at::Tensor& d, const at::Tensor& x,
                const at::Tensor& before,
                Activation activation = Activation::kGelu) {
  const auto d_x = plain_gradient(d, x, activation);
  return {d_x, before + d_x.sum({0}, false, before.scalar_type())};
}

double error_of(const at::Tensor& x, const at::Tensor& exact) {
  return (x.to(at::kDouble) - exact).abs().max().item<double>();
}

void check_exactness(int64_t rows, int64_t width, Activation activation) {
  const auto given = rounded(normal({rows, width}, 1) * 3);
  const auto x =
      keeps_result(activation) ? activated(given, activation) : given;
  const auto d = rounded(normal({rows, width}, 2));
  const auto before = normal({width}, 3).cuda();
  const auto found = ours(d, x, before, activation);
  const auto usual = plain(d, x, before, activation);
  const auto exact = plain(d.to(at::kDouble), x.to(at::kDouble),
                           before.to(at::kDouble), activation);
  const auto check = [&](const at::Tensor& f, const at::Tensor& p,
                         const at::Tensor& e, double epsilon) {
    EXPECT_LE(error_of(f, e),
              2 * error_of(p, e) + 4 * epsilon * e.abs().max().item<double>())
        << "width " << width << ", rows " << rows << ", activation "
        << int(activation);
  };
  check(found.d, usual.d, exact.d, 0x1p-8);
  check(found.sums, usual.sums, exact.sums, 0x1p-23);
}

// At most twice the error of LibTorch's, against float64.
TEST(CudaActivationGradient, IsAsExactAsLibTorchs) {
  for (const auto activation :
       {Activation::kNone, Activation::kGelu, Activation::kRelu,
        Activation::kGeluErf, Activation::kReluSquared}) {
    for (const int64_t width : {8, 40, 256, 1000, 4096}) {
      for (const int64_t rows : {1, 7, 513, 3001}) {
        check_exactness(rows, width, activation);
      }
    }
  }
}

// Where the exponential over- or underflows the slope is 1 or 0.
TEST(CudaActivationGradient, IsFiniteFarFromZero) {
  const auto positive = at::linspace(4, 1e4, 4096).view({4, 1024});
  const auto x = rounded(at::cat({positive, -positive}, 0));
  const auto d = rounded(normal({8, 1024}, 1));
  const auto before = normal({1024}, 2).cuda();
  const auto found = ours(d, x, before);
  EXPECT_LE((found.d - plain(d, x, before).d).abs().max().item<double>(), 0.04);
  EXPECT_TRUE(found.d.narrow(0, 5, 3).eq(0).all().item<bool>());
  EXPECT_TRUE(at::equal(found.d.narrow(0, 1, 3), d.narrow(0, 1, 3)));
}

TEST(CudaActivationGradient, GivesTheSameBitsTwice) {
  const auto x = rounded(normal({5000, 264}, 1));
  const auto d = rounded(normal({5000, 264}, 2));
  const auto before = normal({264}, 3).cuda();
  const auto once = ours(d, x, before);
  const auto again = ours(d, x, before);
  EXPECT_TRUE(at::equal(once.d, again.d));
  EXPECT_TRUE(at::equal(once.sums, again.sums));
}

// What the kernel does not take goes to LibTorch.
TEST(CudaActivationGradient, TakesOddWidthsAndFloat32) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const auto x = normal({77, 33}, 1).cuda().to(type);
    const auto d = normal({77, 33}, 2).cuda().to(type);
    const auto before = normal({33}, 3).cuda();
    const auto found = ours(d, x, before);
    const auto usual = plain(d, x, before);
    EXPECT_TRUE(at::equal(found.d, usual.d));
    EXPECT_TRUE(at::equal(found.sums, usual.sums));
  }
}

}  // namespace
}  // namespace reformer
