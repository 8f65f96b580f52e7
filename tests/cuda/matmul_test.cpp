// Products of bfloat16 matrices that are added to float32 numbers.
#include "reformer/ops/matmul.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include "reformer/device/memory_meter.h"
#include "reformer/ops/linear.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);

at::Tensor rounded(at::IntArrayRef sizes, uint64_t seed) {
  return normal(sizes, seed).to(kGpu, at::kBFloat16);
}

// Products of bfloat16 numbers are exact in float32, so what is left is the
// rounding of float32 sums.
void expect_near(const at::Tensor& found, const at::Tensor& exact,
                 int64_t width) {
  EXPECT_EQ(found.scalar_type(), at::kFloat);
  const double error =
      (found.to(at::kDouble) - exact).abs().max().item<double>();
  EXPECT_LE(error, 0x1p-20 * double(width)) << width;
}

TEST(CudaMatrixSums, AreNotRoundedToBfloat16) {
  for (const int64_t width : {40, 1024, 3000}) {
    const auto a = rounded({513, width}, 1);
    const auto b = rounded({width, 264}, 2);
    const auto exact = at::matmul(a.to(at::kDouble), b.to(at::kDouble));
    expect_near(matmul(a, b, at::kFloat), exact, width);
    for (const double scale : {1.0, -1.0}) {
      const auto before = normal({513, 264}, 3).to(kGpu);
      const auto sum = before.clone();
      add_matmul(sum, a, b, scale);
      expect_near(sum, before.to(at::kDouble) + scale * exact, width);
    }
  }
}

// As gradients of matrices are taken.
TEST(CudaMatrixSums, TakeTransposedMatrices) {
  const auto d_y = rounded({3000, 264}, 1);
  const auto x = rounded({3000, 136}, 2);
  const auto before = normal({264, 136}, 3).to(kGpu);
  const auto sum = before.clone();
  add_matmul(sum, d_y.t(), x);
  expect_near(sum,
              before.to(at::kDouble) +
                  at::matmul(d_y.t().to(at::kDouble), x.to(at::kDouble)),
              3000);
}

TEST(CudaMatrixSums, GiveTheSameBitsTwice) {
  const auto a = rounded({1000, 4096}, 1);
  const auto b = rounded({4096, 264}, 2);
  const auto once = normal({1000, 264}, 3).to(kGpu);
  const auto again = once.clone();
  add_matmul(once, a, b, -1);
  add_matmul(again, a, b, -1);
  EXPECT_TRUE(at::equal(once, again));
}

// A stream is as large as anything: no copy of it may be made.
TEST(CudaMatrixSums, OfManyRowsTakeNoMemory) {
  const at::NoGradGuard no_grad;
  const auto x = rounded({2, 5000, 264}, 1);
  const LinearWeights matrix{rounded({512, 264}, 2), {}};
  const auto y = normal({2, 5000, 512}, 3).to(kGpu);
  const auto exact =
      y.to(at::kDouble) -
      at::matmul(x.to(at::kDouble), matrix.weight.to(at::kDouble).t());
  add_linear_exactly(x, matrix, y.clone(), -1);  // the library's own workspace
  const MemoryMeter meter(kGpu);
  add_linear_exactly(x, matrix, y, -1);
  EXPECT_LT(meter.peak_bytes(), int64_t(y.nbytes()) / 10);
  expect_near(y, exact, 264);
}

}  // namespace
}  // namespace reformer
