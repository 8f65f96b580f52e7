#include "reformer/generate/completion.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/model/small_model.h"

namespace reformer {
namespace {

constexpr int64_t kLength = 20;
constexpr int64_t kGiven = 7;

// Local attention: no bucket can flip by rounding.
class CompletionTest : public testing::Test {
 protected:
  CompletionTest() : model_(small_config_of("local")) {
    shake(model_, /*size=*/0.3);
  }

  at::Tensor given(uint64_t seed) const {
    return random_tokens(model_.config(), seed).narrow(1, 0, kGiven);
  }
  at::Tensor completed(const at::Tensor& given,
                       const CompletionConfig& config) const {
    return complete(model_, given, kLength, config,
                    [](int64_t) { return true; });
  }

  LanguageModel model_;
};

// The slow reference: the whole pass again for each token.
TEST_F(CompletionTest, WithoutChanceItIsTheMostProbableTokenEachTime) {
  const auto begin = given(1);
  CompletionConfig config;
  config.sampler.temperature = 0;
  auto reference = begin;
  for (int64_t at = kGiven; at < kLength; ++at) {
    // The last prediction of a text with any token in its place.
    const auto asked =
        at::cat({reference, at::zeros({reference.size(0), 1}, at::kLong)}, 1);
    const auto logits = model_.logits(asked, evaluation_pass()).detach();
    reference = at::cat({reference, at::argmax(logits.narrow(1, at, 1), 2)}, 1);
  }
  EXPECT_TRUE(at::equal(completed(begin, config), reference));
}

TEST_F(CompletionTest, KeepsWhatIsGivenAndDrawsTheRest) {
  const auto begin = given(2);
  CompletionConfig config;
  config.tokens = 5;
  const auto all = completed(begin, config);
  ASSERT_EQ(all.sizes(), at::IntArrayRef({begin.size(0), kLength}));
  EXPECT_TRUE(at::equal(all.narrow(1, 0, kGiven), begin));
  const auto drawn = all.narrow(1, kGiven, kLength - kGiven);
  EXPECT_LT(drawn.max().item<int64_t>(), 5);
  EXPECT_GT(drawn.max().item<int64_t>(), 0);
  EXPECT_TRUE(at::equal(all, completed(begin, config)));
  config.sampler.seed = 1;
  EXPECT_FALSE(at::equal(all, completed(begin, config)));
}

TEST_F(CompletionTest, StopsWhenItIsTold) {
  const auto begin = given(3);
  CompletionConfig config;
  const auto whole = completed(begin, config);
  int64_t asked = 0;
  const auto part = complete(model_, begin, kLength, config, [&](int64_t made) {
    EXPECT_EQ(made, asked++);
    return made < 4;
  });
  EXPECT_EQ(asked, 5);
  EXPECT_TRUE(
      at::equal(part.narrow(1, 0, kGiven + 4), whole.narrow(1, 0, kGiven + 4)));
  EXPECT_EQ(
      part.narrow(1, kGiven + 4, kLength - kGiven - 4).max().item<int64_t>(),
      0);
}

}  // namespace
}  // namespace reformer
