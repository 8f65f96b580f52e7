// Chunks of positions change memory, never results (paper Sec. 3).
#include <gtest/gtest.h>

#include "tests/model/small_model.h"

namespace reformer {
namespace {

constexpr int64_t kWhole = 1000;  // more than there are

Step step_with(const std::string& block, int64_t feed_forward_chunk,
               int64_t loss_chunk, double dropout = 0.1) {
  auto config = small_config();
  config.model.dropout = dropout;
  config.model.block = block;
  config.model.feed_forward_chunk = feed_forward_chunk;
  config.model.loss_chunk = loss_chunk;
  LanguageModel model(config, at::kDouble);
  shake(model, 0.05);
  const auto some = random_tokens(config, 9).remainder(3).ne(0);
  return step_of(model, random_tokens(config, 1), some);
}

class Chunks : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Blocks, Chunks,
                         testing::Values("reversible", "stored", "residual"),
                         [](const auto& instance) { return instance.param; });

TEST_P(Chunks, OfTheFeedForwardChangeNeitherLossNorGradients) {
  for (const double dropout : {0.1, 0.0}) {
    const auto whole = step_with(GetParam(), kWhole, kWhole, dropout);
    for (const int64_t chunk : {0, 1, 7, 64, 66}) {
      SCOPED_TRACE(chunk);
      expect_same_step(step_with(GetParam(), chunk, kWhole, dropout), whole,
                       1e-11);
    }
  }
}

TEST_P(Chunks, OfTheLossChangeNeitherLossNorGradients) {
  const auto whole = step_with(GetParam(), kWhole, kWhole);
  for (const int64_t chunk : {0, 1, 7, 64, 66}) {
    SCOPED_TRACE(chunk);
    expect_same_step(step_with(GetParam(), kWhole, chunk), whole, 1e-11);
  }
}

}  // namespace
}  // namespace reformer
