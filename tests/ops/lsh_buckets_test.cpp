#include "reformer/ops/lsh_buckets.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reformer/ops/lsh_rotations.h"
#include "tests/support/cases.h"
#include "tests/support/reference.h"

namespace reformer {
namespace {

constexpr HashKey kKey{/*seed=*/3, /*step=*/1, /*layer=*/4};

at::Tensor rotations_for(const at::Tensor& vectors, int64_t rounds,
                         int64_t n_buckets) {
  return lsh_rotations(kKey, vectors.size(1), rounds, vectors.size(3),
                       n_buckets);
}

at::Tensor hash(const at::Tensor& vectors, int64_t rounds, int64_t n_buckets) {
  return lsh_buckets(vectors, rotations_for(vectors, rounds, n_buckets),
                     n_buckets)
      .to(at::kLong);
}

double share_of(const at::Tensor& condition) {
  return condition.to(at::kDouble).mean().item<double>();
}

TEST(LshBuckets, AreTheArgmaxOfTheReferenceWithEachInstructionSet) {
  for (const int64_t n_buckets : {2, 4, 30, 128, 192, 1024, 2048, 65536}) {
    for (const int64_t d_head : {8, 40, 64, 129}) {
      const auto vectors = normal({2, 3, 101, d_head}, n_buckets + d_head);
      const auto rotations = rotations_for(vectors, /*rounds=*/3, n_buckets);
      const auto expected = reference::hash(vectors, rotations, n_buckets);
      for_each_instruction_set([&](const std::string& name) {
        SCOPED_TRACE(name + ", " + std::to_string(n_buckets) + " buckets, d " +
                     std::to_string(d_head));
        const auto buckets =
            lsh_buckets(vectors, rotations, n_buckets).to(at::kLong);
        // Rounding may decide between two almost equal columns, no more.
        EXPECT_LT(share_of(buckets != expected), 2e-3);
        EXPECT_LT(
            reference::largest_miss(vectors, rotations, n_buckets, buckets),
            1e-4);
      });
      const auto exact =
          lsh_buckets(vectors.to(at::kDouble), rotations, n_buckets);
      EXPECT_TRUE(exact.to(at::kLong).equal(expected)) << n_buckets;
    }
  }
}

TEST(LshBuckets, OppositeVectorsLandHalfTheBucketsApart) {
  const auto vectors = normal({2, 2, 200, 40}, 1);
  for (const int64_t n_buckets : {2, 16, 128}) {
    const auto half = n_buckets / 2;
    EXPECT_TRUE(
        hash(-vectors, 3, n_buckets)
            .equal((hash(vectors, 3, n_buckets) + half).remainder(n_buckets)))
        << n_buckets;
  }
}

TEST(LshBuckets, ScaleDoesNotMatter) {
  const auto vectors = normal({1, 2, 1000, 64}, 2);
  for (const int64_t n_buckets : {64, 1024}) {
    const auto buckets = hash(vectors, 4, n_buckets);
    for (const double power_of_two : {0x1p-20, 0.5, 2.0, 0x1p20}) {
      EXPECT_TRUE(hash(vectors * power_of_two, 4, n_buckets).equal(buckets))
          << power_of_two;
    }
    const auto exact = hash(vectors.to(at::kDouble), 4, n_buckets);
    for (const double factor : {1e-3, 1e3}) {
      EXPECT_TRUE(
          hash(vectors.to(at::kDouble) * factor, 4, n_buckets).equal(exact))
          << factor;
      EXPECT_LT(share_of(hash(vectors * factor, 4, n_buckets) != buckets), 1e-3)
          << factor;
    }
  }
}

// How often two vectors at this angle share a bucket, over 8192 rotations.
double collision_rate(double degrees, int64_t n_buckets) {
  constexpr int64_t kHeads = 32;
  constexpr int64_t kRounds = 256;
  const double angle = degrees * M_PI / 180;
  auto vectors = at::zeros({1, kHeads, 2, 8}, at::kDouble);
  vectors.select(2, 0).select(2, 3).fill_(1);
  vectors.select(2, 1).select(2, 3).fill_(std::cos(angle));
  vectors.select(2, 1).select(2, 5).fill_(std::sin(angle));
  const auto buckets = hash(vectors, kRounds, n_buckets);
  return share_of(buckets.select(3, 0) == buckets.select(3, 1));
}

TEST(LshBuckets, TwoBucketsCollideWithOneMinusTheAngleOverPi) {
  for (const double degrees : {0, 20, 45, 90, 120, 180}) {
    const double expected = 1 - degrees / 180;
    const double deviation = std::sqrt(expected * (1 - expected) / 8192);
    EXPECT_NEAR(collision_rate(degrees, 2), expected, 4 * deviation + 1e-12)
        << degrees;
  }
}

TEST(LshBuckets, CollisionsFallWithTheAngle) {
  for (const int64_t n_buckets : {16, 64, 256}) {
    double last = 2;
    for (const double degrees : {0, 10, 20, 40, 60, 90}) {
      const double rate = collision_rate(degrees, n_buckets);
      EXPECT_LT(rate, last) << degrees << " degrees, " << n_buckets;
      last = rate;
    }
    EXPECT_EQ(collision_rate(0, n_buckets), 1);
    EXPECT_EQ(collision_rate(180, n_buckets), 0);
    // Right angles make independent hashes.
    const double expected = 1.0 / double(n_buckets);
    EXPECT_NEAR(collision_rate(90, n_buckets), expected,
                4 * std::sqrt(expected / 8192));
  }
}

TEST(LshBuckets, FactorisedHashIsTheMixedRadixOfItsFactors) {
  const auto vectors = normal({2, 2, 300, 40}, 4).to(at::kDouble);
  const auto rotations = rotations_for(vectors, 3, 2048);  // 16 * 16 * 8
  const auto part = [&](int64_t begin, int64_t factor) {
    return lsh_buckets(vectors, rotations.narrow(3, begin, factor / 2), factor)
        .to(at::kLong);
  };
  const auto expected = (part(0, 16) * 16 + part(8, 16)) * 8 + part(16, 8);
  EXPECT_TRUE(hash(vectors, 3, 2048).equal(expected));
}

TEST(LshBuckets, TiesGoToTheFirst) {
  const auto zero = at::zeros({1, 2, 40, 16}, at::kFloat);
  const auto vectors = normal({1, 2, 40, 16}, 5);
  // The same column thrice: the argmax is 0, or 3 where it is negative.
  const auto column = normal({2, 1, 16, 1}, 6);
  const auto rotations = column.expand({2, 1, 16, 3});
  for_each_instruction_set([&](const std::string& name) {
    for (const int64_t n_buckets : {2, 64, 1024}) {
      EXPECT_EQ(hash(zero, 3, n_buckets).max().item<int64_t>(), 0) << name;
    }
    const auto buckets = lsh_buckets(vectors, rotations, 6).to(at::kLong);
    EXPECT_TRUE(((buckets == 0) | (buckets == 3)).all().item<bool>()) << name;
  });
}

TEST(LshBuckets, APrefixHashesAsTheWholeDoes) {
  const auto vectors = normal({2, 2, 2100, 64}, 7);
  const auto whole = hash(vectors, 2, 64);
  for (const int64_t length : {1, 17, 1024, 1025, 2099}) {
    EXPECT_TRUE(hash(vectors.narrow(2, 0, length), 2, 64)
                    .equal(whole.narrow(3, 0, length)))
        << length;
  }
}

TEST(LshBuckets, AVectorAloneHashesAsAmongOthers) {
  const auto vectors = normal({2, 3, 500, 41}, 8);
  const auto alone = vectors.transpose(1, 2).reshape({1000, 3, 1, 41});
  for_each_instruction_set([&](const std::string& name) {
    for (const int64_t n_buckets : {2, 6, 128, 144, 2048}) {
      for (const auto type : {at::kFloat, at::kDouble}) {
        const auto expected = hash(vectors.to(type), 2, n_buckets)
                                  .permute({0, 3, 1, 2})
                                  .reshape({1000, 3, 2, 1});
        EXPECT_TRUE(hash(alone.to(type), 2, n_buckets).equal(expected))
            << name << ", " << n_buckets << " buckets";
      }
    }
  });
}

}  // namespace
}  // namespace reformer
