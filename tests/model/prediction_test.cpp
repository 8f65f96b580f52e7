// Parameters, keys and arithmetic, predicted from a config.
#include "reformer/model/prediction.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "reformer/ops/interval_statistics.h"
#include "reformer/ops/lsh_attention.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

// Of random vectors.
double measured_keys(LshConfig config) {
  const auto qk = normal_numbers({1, 2, 1024, 32}, 1);
  return lsh_statistics(lsh_attention_buckets(qk, config, {1, 2, 3}), config)
      .keys_per_query;
}

TEST(KeysPerQuery, OfLshAreThoseOfRandomVectorsOrSomewhatFewer) {
  auto config = medium_config();
  for (const int64_t rounds : {1, 4}) {
    for (const int64_t window : {0, 16}) {
      for (const int64_t n_buckets : {16, 64}) {
        config.lsh.rounds = rounds;
        config.lsh.local_window = window;
        config.lsh.n_buckets = n_buckets;
        const double ratio =
            measured_keys(config.lsh) /
            expected_keys_per_query(config, AttentionKind::kLsh);
        EXPECT_GE(ratio, 0.9) << rounds << " " << window << " " << n_buckets;
        EXPECT_LE(ratio, 1.6) << rounds << " " << window << " " << n_buckets;
      }
    }
  }
}

TEST(KeysPerQuery, OfWindowsAndOfEverythingAreCounted) {
  auto config = medium_config();
  config.train.length = 1000;
  config.lsh.chunk_length = 50;
  double trailing = 0;
  double chunk = 0;
  double everything = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    trailing += double(std::min<int64_t>(i, 50)) / 1000;
    chunk += double(i < 50 ? i : 50 + i % 50) / 1000;
    everything += double(i) / 1000;
  }
  EXPECT_NEAR(expected_keys_per_query(config, AttentionKind::kLocal), trailing,
              1);
  EXPECT_NEAR(expected_keys_per_query(config, AttentionKind::kFull), everything,
              1);
  EXPECT_NEAR(expected_keys_per_query(config, AttentionKind::kFullSharedQk),
              everything, 1);
  config.lsh.window = Window::kChunk;
  EXPECT_NEAR(expected_keys_per_query(config, AttentionKind::kLocal), chunk, 1);
}

TEST(Flops, AreThoseOfTheProductsWrittenOut) {
  auto config = medium_config();
  config.model.layers = 1;
  config.model.attention = "full_shared_qk";
  const double tokens = 2 * 1024;
  const double projections = 2 * tokens * 64 * (2 * 32) * 3;
  const double feed_forward = 2 * tokens * 64 * 256 * 2;
  const double attention = 2 * tokens * (2 * 32) * 512 * 2;
  const double head = 2 * tokens * 128 * 19;
  const auto flops = predict_flops(config);
  EXPECT_DOUBLE_EQ(flops.forward,
                   projections + feed_forward + attention + head);
  EXPECT_DOUBLE_EQ(flops.recomputation, projections + feed_forward + attention);
  EXPECT_DOUBLE_EQ(flops.backward,
                   2 * (projections + feed_forward + head) + 2.5 * attention);
  config.model.block = "stored";
  EXPECT_EQ(predict_flops(config).recomputation, 0);
}

TEST(Flops, OfLshGrowWithLengthAndOfFullWithItsSquare) {
  auto config = medium_config();
  const auto growth = [&](const std::string& attention) {
    config.model.attention = attention;
    config.train.length = 1 << 16;
    const double shorter = predict_flops(config).total();
    config.train.length = 1 << 18;
    return predict_flops(config).total() / shorter;
  };
  EXPECT_LE(growth("lsh"), 4.4);  // the hash has more buckets to tell apart
  EXPECT_NEAR(growth("local"), 4, 0.1);
  EXPECT_GE(growth("full"), 15);
}

TEST(LongestInput, IsWhatThePositionsAllow) {
  auto config = medium_config();
  EXPECT_EQ(longest_input(config), 1024);
  config.model.positions = "sinusoid";
  EXPECT_EQ(longest_input(config), 0);
  config.model.positions = "axial";
  config.model.axial_shape = {32, 64, 3};
  EXPECT_EQ(longest_input(config), 32 * 64 * 3);
}

}  // namespace
}  // namespace reformer
