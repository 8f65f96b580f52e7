#include "reformer/model/ngram_buckets.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <set>

#include "reformer/model/language_model.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

Config config_of(std::vector<int64_t> ngrams) {
  auto config = small_config_of("lsh");
  config.lsh.n_buckets = 64;
  config.lsh.ngrams = std::move(ngrams);
  return config;
}

TEST(NgramBuckets, TellWhereTheLastInputsAreTheSame) {
  const NgramBuckets buckets(config_of({2, 4}));
  EXPECT_EQ(buckets.context(), 3);
  //                          0  1  2  3  4  5  6  7  8  9
  const auto inputs =
      at::tensor({9, 9, 9, 1, 2, 3, 4, 2, 3, 4, 1, 2, 3}, at::kLong)
          .unsqueeze(0);
  const auto ids = buckets.of(inputs).to(at::kLong);
  ASSERT_EQ(ids.sizes(), at::IntArrayRef({1, 2, 10}));
  EXPECT_LT(ids.max().item<int64_t>(), 64);
  EXPECT_GE(ids.min().item<int64_t>(), 0);
  const auto of = [&](int64_t round, int64_t position) {
    return ids[0][round][position].item<int64_t>();
  };
  EXPECT_EQ(of(0, 2), of(0, 5));  // 2 3, and 1 2 3 is not 4 2 3
  EXPECT_NE(of(1, 2), of(1, 5));
  EXPECT_EQ(of(0, 8), of(0, 1));  // 1 2, after 9 and after 4
  EXPECT_NE(of(1, 8), of(1, 1));
  std::set<int64_t> pairs;
  for (const int64_t position : {0, 1, 2, 3, 4, 7}) {
    pairs.insert(of(0, position));
  }
  EXPECT_EQ(pairs.size(), 6U);  // 9 1, 1 2, 2 3, 3 4, 4 2, 4 1
}

TEST(NgramBuckets, WithoutNgramsThereAreNone) {
  const NgramBuckets none(config_of({}));
  EXPECT_EQ(none.context(), 0);
  const auto inputs = at::tensor({1, 2}, at::kLong).unsqueeze(0);
  EXPECT_FALSE(none.of(inputs).defined());
  const auto hashed = at::tensor({1, 2}, at::kLong).to(at::kUInt16);
  const auto buckets = hashed.view({1, 1, 1, 2});
  EXPECT_TRUE(append_ngrams(buckets, {}).is_same(buckets));
}

// Of every head, behind those that it hashed.
TEST(NgramBuckets, AreTheLastRoundsOfEveryLayer) {
  const auto config = config_of({3});
  const LanguageModel model(config);
  const auto tokens = random_tokens(config, 1);
  std::vector<at::Tensor> buckets;
  model.logits(tokens, evaluation_pass(), &buckets);
  const auto ngrams = model.pass_over(tokens, evaluation_pass()).ngrams;
  ASSERT_EQ(buckets.size(), size_t(config.model.layers));
  for (const auto& of_layer : buckets) {
    ASSERT_EQ(of_layer.size(2), config.lsh.rounds + 1);
    for (int64_t head = 0; head < of_layer.size(1); ++head) {
      EXPECT_TRUE(at::equal(
          of_layer.select(1, head).select(1, config.lsh.rounds).to(at::kLong),
          ngrams.select(1, 0).to(at::kLong)));
    }
  }
}

}  // namespace
}  // namespace reformer
