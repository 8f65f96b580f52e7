#include "reformer/ops/interval_statistics.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "reformer/ops/lsh_attention.h"
#include "tests/support/cases.h"
#include "tests/support/reference.h"

namespace reformer {
namespace {

double total(const at::Tensor& set) {
  return set.to(at::kDouble).sum().item<double>();
}

double total(const reference::AttendedSets& sets) {
  double sum = 0;
  for (const auto& set : sets) sum += total(set);
  return sum;
}

TEST(LshStatistics, CountThePairsOfTheDefinition) {
  for (const auto& lsh : lsh_cases()) {
    if (lsh.length > 200) continue;
    SCOPED_TRACE(lsh.name());
    const auto mask = make_mask(lsh.padding, lsh.batch, lsh.length);
    const auto buckets =
        lsh_attention_buckets(lsh.inputs().q, lsh.config, HashKey{});
    const auto counted = lsh_statistics(buckets, lsh.config, mask);

    const double queries =
        double(lsh.heads) * (mask.defined() ? mask.sum().item<double>()
                                            : double(lsh.batch * lsh.length));
    const auto sets = reference::attended_sets(buckets, lsh.config, mask);
    EXPECT_NEAR(counted.keys_per_query * queries,
                total(reference::union_of(sets)), 1e-6);

    LshConfig hash_rounds = lsh.config;
    hash_rounds.local_window = 0;
    LshConfig whole_buckets = hash_rounds;
    whole_buckets.window = Window::kTrailing;
    whole_buckets.chunk_length = lsh.length;
    const double in_window =
        total(reference::attended_sets(buckets, hash_rounds, mask));
    const double in_bucket =
        total(reference::attended_sets(buckets, whole_buckets, mask));
    EXPECT_NEAR(counted.overflow * in_bucket, in_bucket - in_window, 1e-6);
    EXPECT_GE(counted.computed_per_query * queries, in_window);
  }
}

TEST(LshStatistics, OfNothingAreZero) {
  const auto buckets = at::zeros({1, 1, 2, 5}, at::kUInt16);
  const auto nobody = at::zeros({1, 5}, at::kBool);
  const auto counted = lsh_statistics(buckets, LshConfig{}, nobody);
  EXPECT_EQ(counted.keys_per_query, 0);
  EXPECT_EQ(counted.computed_per_query, 0);
  EXPECT_EQ(counted.overflow, 0);
}

}  // namespace
}  // namespace reformer
