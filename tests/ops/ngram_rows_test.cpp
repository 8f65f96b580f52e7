#include "reformer/ops/ngram_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

at::Tensor tokens_of(int64_t batch, int64_t length, int64_t vocabulary) {
  return at::arange(batch * length, at::kLong)
      .mul_(7919)
      .remainder_(104729)
      .remainder_(vocabulary)
      .view({batch, length});
}

TEST(NgramRows, OfEachLengthThereIsOneOfEachPosition) {
  const auto rows = ngram_rows(tokens_of(3, 33 + 4, 11), 5, 100);
  ASSERT_EQ(rows.size(), 4u);
  for (const auto& of_n : rows) {
    EXPECT_EQ(of_n.sizes(), at::IntArrayRef({3, 33}));
    EXPECT_GE(of_n.min().item<int64_t>(), 0);
    EXPECT_LT(of_n.max().item<int64_t>(), 100);
  }
}

// The n-gram that ends at a position decides, and nothing before or after it.
TEST(NgramRows, DependOnTheLastTokensAlone) {
  constexpr int64_t kLongest = 4;
  constexpr int64_t kAt = 20;  // in tokens
  const auto tokens = tokens_of(1, 40, 50);
  auto changed = tokens.clone();
  changed[0][kAt] = 49 - changed[0][kAt].item<int64_t>();
  const auto before = ngram_rows(tokens, kLongest, 1 << 20);
  const auto after = ngram_rows(changed, kLongest, 1 << 20);
  for (int64_t n = 2; n <= kLongest; ++n) {
    const auto same = (before[n - 2] == after[n - 2])[0];
    for (int64_t i = 0; i < same.size(0); ++i) {
      const int64_t end = i + kLongest - 1;
      const bool contains = end >= kAt && end - n < kAt;
      EXPECT_EQ(same[i].item<bool>(), !contains) << n << "-gram at " << end;
    }
  }
}

TEST(NgramRows, TheOrderOfTokensCounts) {
  const auto tokens = at::cat({at::arange(6, at::kLong),  //
                               at::arange(6, at::kLong).flip(0)})
                          .view({2, 6});
  const auto rows = ngram_rows(tokens, 6, 1 << 20).back();
  EXPECT_NE(rows[0][0].item<int64_t>(), rows[1][0].item<int64_t>());
}

// 65,536 pairs of bytes in as many rows: chance leaves 1 / e of them empty.
TEST(NgramRows, AreFilledAsByChance) {
  constexpr int64_t kBytes = 256;
  const auto first = at::arange(kBytes * kBytes, at::kLong);
  const auto pairs = at::cat({first.div(kBytes, "floor").unsqueeze(1),
                              first.remainder(kBytes).unsqueeze(1)},
                             1);  // [65536, 2]
  for (const int64_t rows : {65536, 50000}) {
    const auto counts =
        at::bincount(ngram_rows(pairs, 2, rows)[0].flatten(), {}, rows);
    const double empty =
        (counts == 0).sum().item<double>() / static_cast<double>(rows);
    EXPECT_NEAR(empty, std::exp(-65536.0 / double(rows)), 0.02) << rows;
    EXPECT_LE(counts.max().item<int64_t>(), 12) << rows;
  }
}

TEST(NgramRows, WhatIsImpossibleIsNamed) {
  const auto tokens = tokens_of(1, 10, 5);
  EXPECT_THROW(ngram_rows(tokens, 1, 10), Error);
  EXPECT_THROW(ngram_rows(tokens, 9, 10), Error);
  EXPECT_THROW(ngram_rows(tokens, 3, 0), Error);
  EXPECT_THROW(ngram_rows(tokens.narrow(1, 0, 2), 3, 10), Error);
  EXPECT_THROW(ngram_rows(tokens.to(at::kInt), 3, 10), Error);
}

}  // namespace
}  // namespace reformer
