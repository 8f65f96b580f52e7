// The tolerance of interval attention, and its reference in float64 on the same
// buckets.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "tests/cuda/interval_attention_problem.h"

namespace reformer::kernels {

using Numbers = std::vector<double>;

struct Error {
  double largest = 0;
  double root_mean_square = 0;
};

inline Error error_of(const Numbers& got, const Numbers& wanted) {
  Error e;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == wanted[i]) continue;  // -inf too
    double difference = std::abs(got[i] - wanted[i]);
    if (std::isnan(difference)) difference = 1e30;
    e.largest = std::max(e.largest, difference);
    e.root_mean_square += difference * difference;
  }
  e.root_mean_square =
      std::sqrt(e.root_mean_square / std::max<std::size_t>(got.size(), 1));
  return e;
}

// At most twice the error of the plain version in the same precision, and
// 4 eps of the largest number; in the mean a sixteenth of that allowance.
inline void expect_as_good(const char* what, const Numbers& got,
                           const Numbers& plain, const Numbers& wanted,
                           double epsilon) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  double scale = 1;  // of what cancels, where nothing else is left
  for (const double x : wanted) {
    if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
  }
  const Error ours = error_of(got, wanted);
  const Error theirs = error_of(plain, wanted);
  EXPECT_LE(ours.largest, 2 * theirs.largest + 4 * epsilon * scale) << what;
  EXPECT_LE(ours.root_mean_square,
            2 * theirs.root_mean_square + 0.25 * epsilon * scale)
      << what;
  if (std::getenv("REFORMER_PRINT_ERRORS")) {
    std::printf("%-6s max %.2e (plain %.2e) rms %.2e (plain %.2e) of %.2e\n",
                what, ours.largest, theirs.largest, ours.root_mean_square,
                theirs.root_mean_square, scale);
  }
}

inline void expect_same_bits(const Numbers& a, const Numbers& b,
                             const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(a[i] == b[i])
        << what << " at " << i << ": " << a[i] << ", " << b[i];
  }
}

// All that `got` has, of numbers stored as T.
template <class T>
void expect_as_good(const Result& got, const Problem& p) {
  if (std::getenv("REFORMER_PRINT_ERRORS")) {
    std::printf("%s\n", p.sizes.name().c_str());
  }
  const double epsilon = std::is_same_v<T, float> ? 0x1p-23 : 0x1p-8;
  const Result wanted = attend_plainly<double, T>(p, /*round=*/false);
  const Result plain = attend_plainly<float, T>(p, /*round=*/true);
  expect_as_good("o", got.output, plain.output, wanted.output, epsilon);
  expect_as_good("lse", got.lse, plain.lse, wanted.lse, 0x1p-20);
  expect_as_good("dq", got.d_q, plain.d_q, wanted.d_q, epsilon);
  expect_as_good("dk", got.d_k, plain.d_k, wanted.d_k, epsilon);
  expect_as_good("dv", got.d_v, plain.d_v, wanted.d_v, epsilon);
}

inline void expect_same_bits(const Result& a, const Result& b) {
  expect_same_bits(a.output, b.output, "o");
  expect_same_bits(a.lse, b.lse, "lse");
  expect_same_bits(a.d_q, b.d_q, "dq");
  expect_same_bits(a.d_k, b.d_k, "dk");
  expect_same_bits(a.d_v, b.d_v, "dv");
}

}  // namespace reformer::kernels
