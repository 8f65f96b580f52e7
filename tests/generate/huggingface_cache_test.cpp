#include "reformer/generate/huggingface_cache.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace reformer {
namespace {

constexpr int64_t kHeads = 2;
constexpr int64_t kHead = 8;
constexpr int64_t kMost = 40;

// Both when all is seen and in chunks, and as a text grows from one to other.
TEST(HuggingfaceCache, AStepIsTheLastPositionOfTheWholePass) {
  for (const int64_t rounds : {1, 3}) {
    const HuggingfaceLsh lsh{4, 12, 3, {2, 4}};
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
    const auto drawn = [&] {
      return at::randn({2, kHeads, kMost, kHead}, generator, at::kDouble);
    };
    const auto qk = drawn() * 3;
    const auto v = drawn();
    const auto buckets =
        at::randint(0, 8, {2, kHeads, rounds, kMost}, generator, at::kLong)
            .to(at::kUInt16);
    HuggingfaceCache cache(lsh, {2, kHeads, rounds, kHead, at::kDouble});
    std::vector<int64_t> lengths = {2, 7};  // of the two texts
    const auto read = cache.read(qk.narrow(2, 0, 7), v.narrow(2, 0, 7),
                                 buckets.narrow(3, 0, 7), lengths);
    EXPECT_EQ(read[0].narrow(1, 2, 5).abs().max().item<double>(), 0);
    for (int64_t step = 0; lengths[1] < kMost; ++step) {
      const auto next = [&](const at::Tensor& x, int64_t dim) {
        return at::cat({x.narrow(0, 0, 1).narrow(dim, lengths[0], 1),
                        x.narrow(0, 1, 1).narrow(dim, lengths[1], 1)});
      };
      const auto output = cache.step(next(qk, 2), next(v, 2), next(buckets, 3));
      for (int64_t row = 0; row < 2; ++row) {
        const int64_t n = ++lengths[size_t(row)];
        const auto of_row = [&](const at::Tensor& x, int64_t dim) {
          return x.narrow(0, row, 1).narrow(dim, 0, n);
        };
        const auto whole = huggingface_lsh_attention(
            of_row(qk, 2), of_row(v, 2), of_row(buckets, 3), lsh);
        EXPECT_LT((output[row].select(1, 0) - whole[0].select(1, n - 1))
                      .abs()
                      .max()
                      .item<double>(),
                  1e-9)
            << rounds << " rounds, length " << n;
      }
    }
  }
}

// Texts that join and leave go on as they would alone.
TEST(HuggingfaceCache, RowsComeAndGo) {
  const HuggingfaceLsh lsh{4, 12, 3, {2, 4}};
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(6);
  const auto drawn = [&] {
    return at::randn({3, kHeads, 20, kHead}, generator, at::kDouble);
  };
  const auto qk = drawn();
  const auto v = drawn();
  const auto buckets =
      at::randint(0, 8, {3, kHeads, 2, 20}, generator, at::kLong)
          .to(at::kUInt16);
  const auto cache_of = [&](int64_t text, int64_t n) {
    HuggingfaceCache cache(lsh, {1, kHeads, 2, kHead, at::kDouble});
    cache.read(qk.narrow(0, text, 1).narrow(2, 0, n),
               v.narrow(0, text, 1).narrow(2, 0, n),
               buckets.narrow(0, text, 1).narrow(3, 0, n), {n});
    return cache;
  };
  const auto next = [&](HuggingfaceCache& cache,
                        const std::vector<std::pair<int64_t, int64_t>>& rows) {
    std::vector<at::Tensor> q, values, ids;
    for (const auto& [text, at] : rows) {
      q.push_back(qk.narrow(0, text, 1).narrow(2, at, 1));
      values.push_back(v.narrow(0, text, 1).narrow(2, at, 1));
      ids.push_back(buckets.narrow(0, text, 1).narrow(3, at, 1));
    }
    return cache.step(at::cat(q), at::cat(values), at::cat(ids));
  };
  auto alone = cache_of(2, 9);
  const auto first = next(alone, {{2, 9}});
  const auto second = next(alone, {{2, 10}});

  HuggingfaceCache together(lsh, {3, kHeads, 2, kHead, at::kDouble});
  auto other = cache_of(0, 5);
  auto one = cache_of(2, 9);
  together.take_row(0, other);
  together.take_row(1, one);
  together.use_rows(2);
  EXPECT_EQ(together.config().batch, 2);
  EXPECT_TRUE(at::equal(next(together, {{0, 5}, {2, 9}})[1], first[0]));
  together.clear_row(0);
  together.move_row(1, 0);
  together.use_rows(1);
  EXPECT_TRUE(at::equal(next(together, {{2, 10}})[0], second[0]));
}

}  // namespace
}  // namespace reformer
