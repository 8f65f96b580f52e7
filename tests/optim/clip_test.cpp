#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reformer/base/parallel.h"
#include "reformer/optim/optimizer.h"
#include "tests/optim/some_parameters.h"

namespace reformer {
namespace {

double plain_norm(const std::vector<Parameter>& parameters) {
  double sum = 0;
  for (const auto& parameter : parameters) {
    for (const double g : values_of(parameter.gradient())) sum += g * g;
  }
  return std::sqrt(sum);
}

double clipped_norm(std::vector<Parameter>& parameters, double most) {
  return clip_gradients(parameters, most).item<double>();
}

TEST(ClipGradients, ScalesThemToTheLargestNormAndReturnsTheirOwn) {
  auto parameters = some_parameters(at::kDouble);
  set_gradients(parameters, 1);
  const double norm = plain_norm(parameters);
  const auto first = values_of(parameters[0].gradient());
  EXPECT_NEAR(clipped_norm(parameters, 2.5), norm, 1e-9 * norm);
  EXPECT_NEAR(plain_norm(parameters), 2.5, 1e-9);
  EXPECT_NEAR(values_of(parameters[0].gradient())[3], first[3] * 2.5 / norm,
              1e-12);
}

TEST(ClipGradients, LeavesSmallOnesAlone) {
  auto parameters = some_parameters(at::kFloat);
  set_gradients(parameters, 1);
  const auto before = parameters[1].gradient().clone();
  for (const double most : {0.0, 1e9}) {
    clip_gradients(parameters, most);
    EXPECT_TRUE(at::equal(parameters[1].gradient(), before));
  }
}

TEST(ClipGradients, SkipsWhatHasNoGradientAndLeavesNonFiniteOnesAlone) {
  std::vector<Parameter> parameters = {
      {"a", at::zeros({2}), at::Tensor()},
      {"b", at::zeros({2}), at::full({2}, INFINITY)}};
  EXPECT_TRUE(std::isinf(clipped_norm(parameters, 1)));
  EXPECT_TRUE(std::isinf(values_of(parameters[1].gradient())[0]));
}

// 1e25 squared is beyond float32.
TEST(ClipGradients, KnowsTheNormOfLargeGradients) {
  std::vector<Parameter> parameters = {
      {"a", at::zeros({4}), at::full({4}, 1e25)}};
  EXPECT_NEAR(clipped_norm(parameters, 1) / 2e25, 1, 1e-6);
  EXPECT_NEAR(plain_norm(parameters), 1, 1e-6);
}

TEST(ClipGradients, GivesTheSameBitsForAnyNumberOfThreads) {
  const int before = threads();
  std::vector<double> norms;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    auto parameters = some_parameters(at::kFloat);
    set_gradients(parameters, 1);
    norms.push_back(clipped_norm(parameters, 0));
  }
  set_threads(before);
  EXPECT_EQ(norms[0], norms[1]);
  EXPECT_EQ(norms[0], norms[2]);
}

}  // namespace
}  // namespace reformer
