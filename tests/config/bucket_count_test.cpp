#include "reformer/config/bucket_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

using Factors = std::vector<int64_t>;

// How a product of even factors of at most 32 each is best written, found by
// building up all products instead of taking numbers apart.
struct Best {
  int64_t count = 0;    // of factors, the fewest; 0: no such product
  int64_t largest = 0;  // factor, the smallest possible with that count
};

std::vector<Best> best_products() {
  std::vector<Best> best(kMaxBuckets + 1);
  for (int64_t factor = 2; factor <= 32; factor += 2)
    best[factor] = {1, factor};
  for (int64_t n = 2; n <= kMaxBuckets; n += 2) {
    if (best[n].count == 0) continue;
    for (int64_t factor = 2; factor <= 32; factor += 2) {
      if (n * factor > kMaxBuckets) break;
      auto& of_product = best[n * factor];
      const Best here{best[n].count + 1, std::max(best[n].largest, factor)};
      const bool fewer = of_product.count == 0 || here.count < of_product.count;
      const bool more_equal =
          here.count == of_product.count && here.largest < of_product.largest;
      if (fewer || more_equal) of_product = here;
    }
  }
  return best;
}

TEST(BucketFactors, AreFewestAndMostEqualForEveryNumber) {
  const auto best = best_products();
  for (int64_t n = 129; n <= kMaxBuckets; ++n) {
    const auto factors = bucket_factors(n);
    ASSERT_EQ(static_cast<int64_t>(factors.size()), best[n].count) << n;
    if (factors.empty()) continue;
    int64_t product = 1;
    for (const int64_t factor : factors) {
      ASSERT_EQ(factor % 2, 0) << n;
      product *= factor;
    }
    ASSERT_EQ(product, n);
    ASSERT_TRUE(std::is_sorted(factors.rbegin(), factors.rend())) << n;
    ASSERT_EQ(factors.front(), best[n].largest) << n;
  }
}

TEST(BucketFactors, OfUpTo128EvenBucketsAreThePlainHash) {
  for (int64_t n = -2; n <= 128; ++n) {
    const bool possible = n >= 2 && n % 2 == 0;
    EXPECT_EQ(bucket_factors(n), possible ? Factors{n} : Factors{});
  }
}

TEST(BucketFactors, AreThoseOfTheDocuments) {
  EXPECT_EQ(bucket_factors(192), (Factors{16, 12}));
  EXPECT_EQ(bucket_factors(256), (Factors{16, 16}));
  EXPECT_EQ(bucket_factors(1024), (Factors{32, 32}));
  EXPECT_EQ(bucket_factors(2048), (Factors{16, 16, 8}));
  EXPECT_EQ(bucket_factors(65536), (Factors{16, 16, 16, 16}));
  EXPECT_EQ(bucket_factors(136), Factors{});  // 8 * 17: 34 is too large
  EXPECT_EQ(bucket_factors(65538), Factors{});
}

TEST(BucketCount, NearestIsNearestAndTheSmallerOfTwo) {
  EXPECT_EQ(nearest_bucket_count(136), 132);  // 140 is as near
  for (const double wanted : {-5.0, 0.0, 1.0, 2.9, 3.0, 3.1, 5.0, 127.0, 130.0,
                              131.5, 1000.5, 2047.0, 60000.3, 65535.0, 1e9}) {
    const int64_t nearest = nearest_bucket_count(wanted);
    ASSERT_FALSE(bucket_factors(nearest).empty()) << wanted;
    for (int64_t n = 2; n <= kMaxBuckets; n += 2) {
      const double farther =
          std::abs(double(n) - wanted) - std::abs(double(nearest) - wanted);
      if (farther > 0 || (farther == 0 && n >= nearest)) continue;
      ASSERT_TRUE(bucket_factors(n).empty()) << n << " for " << wanted;
    }
  }
}

TEST(BucketCount, DefaultGivesABucketHalfAChunk) {
  EXPECT_EQ(default_bucket_count(1, 128), 2);
  EXPECT_EQ(default_bucket_count(1024, 128), 16);
  EXPECT_EQ(default_bucket_count(12288, 128), 192);
  EXPECT_EQ(default_bucket_count(16384, 128), 256);
  EXPECT_EQ(default_bucket_count(65536, 128), 1024);
  EXPECT_EQ(default_bucket_count(131072, 128), 2048);
  EXPECT_EQ(default_bucket_count(int64_t{1} << 40, 128), 65536);
}

TEST(BucketCount, ColumnsAreHalfOfEachFactor) {
  EXPECT_EQ(rotation_columns(2), 1);
  EXPECT_EQ(rotation_columns(128), 64);
  EXPECT_EQ(rotation_columns(192), 8 + 6);
  EXPECT_EQ(rotation_columns(2048), 8 + 8 + 4);
}

TEST(BucketCount, ErrorNamesTheOperationTheRuleAndTheNearest) {
  EXPECT_NO_THROW(require_bucket_count("hash", 1024));
  for (const int64_t n : {0, 1, 7, 136, 65538}) {
    try {
      require_bucket_count("hash", n);
      ADD_FAILURE() << n << " was accepted";
    } catch (const Error& error) {
      const std::string message = error.what();
      const auto nearest = std::to_string(nearest_bucket_count(double(n)));
      for (const auto& part :
           {std::string("hash: n_buckets must be"), "got " + std::to_string(n),
            "nearest is " + nearest}) {
        EXPECT_NE(message.find(part), std::string::npos) << message;
      }
    }
  }
}

}  // namespace
}  // namespace reformer
