#include "reformer/ops/joined_softmax.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "tests/support/cases.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

AttentionResult softmax_of(const at::Tensor& scores, const at::Tensor& v) {
  return {scores.softmax(-1).matmul(v), scores.logsumexp(-1)};
}

// One query of one column.
AttentionResult one(double output, double lse) {
  return {at::full({1, 1, 1, 1}, output, at::kDouble),
          at::full({1, 1, 1}, lse, at::kDouble)};
}

double joined(const AttentionResult& a, const AttentionResult& b) {
  JoinedSoftmax softmax;
  softmax.add(a);
  softmax.add(b);
  return softmax.output().item<double>();
}

TEST(JoinedSoftmax, OfPartsOfTheKeysIsThatOfAllOfThem) {
  const auto scores = normal({2, 3, 5, 33}, 1).to(at::kDouble) * 5;
  const auto v = normal({2, 3, 33, 7}, 2).to(at::kDouble);
  JoinedSoftmax softmax;
  for (const auto& [first, n] : {std::pair{0, 10}, {10, 1}, {11, 22}}) {
    softmax.add(softmax_of(scores.narrow(3, first, n), v.narrow(2, first, n)));
  }
  EXPECT_LT(max_error(softmax.output(), softmax_of(scores, v).output), 1e-14);
}

TEST(JoinedSoftmax, WhatTwoPartsHoldCountsTwice) {
  const auto scores = normal({1, 1, 5, 8}, 1).to(at::kDouble);
  const auto v = normal({1, 1, 8, 7}, 2).to(at::kDouble);
  JoinedSoftmax softmax;
  softmax.add(softmax_of(scores, v));
  softmax.add(softmax_of(scores.narrow(3, 2, 3), v.narrow(2, 2, 3)));
  const auto twice = softmax_of(at::cat({scores, scores.narrow(3, 2, 3)}, 3),
                                at::cat({v, v.narrow(2, 2, 3)}, 2));
  EXPECT_LT(max_error(softmax.output(), twice.output), 1e-14);
}

TEST(JoinedSoftmax, WhoSeesNobodyInOnePartHasTheOthers) {
  for (const double own : {3., kInfinity, kNan}) {
    EXPECT_EQ(joined(one(own, -kInfinity), one(2, 7)), 2) << own;
    EXPECT_EQ(joined(one(2, 7), one(own, -kInfinity)), 2) << own;
  }
}

TEST(JoinedSoftmax, WhoSeesNobodyAnywhereKeepsItsOwn) {
  EXPECT_EQ(joined(one(3, -kInfinity), one(3, -kInfinity)), 3);
}

TEST(JoinedSoftmax, NoNumberIsLost) {
  EXPECT_TRUE(std::isnan(joined(one(2, kNan), one(3, 1))));
  EXPECT_TRUE(std::isnan(joined(one(3, 1), one(2, kNan))));
  EXPECT_TRUE(std::isnan(joined(one(kNan, 1), one(2, 1))));
}

TEST(JoinedSoftmax, KeepsThePrecisionOfTheStatistics) {
  JoinedSoftmax softmax;
  softmax.add({at::full({1, 1, 1, 1}, 1, at::kBFloat16),
               at::full({1, 1, 1}, 0, at::kFloat)});
  softmax.add({at::full({1, 1, 1, 1}, 1 + 1. / 128, at::kBFloat16),
               at::full({1, 1, 1}, 0, at::kFloat)});
  EXPECT_EQ(softmax.output().scalar_type(), at::kFloat);
  EXPECT_EQ(softmax.output().item<double>(), 1 + 1. / 256);
}

}  // namespace
}  // namespace reformer
