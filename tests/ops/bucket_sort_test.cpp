#include "reformer/ops/bucket_sort.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "tests/support/cases.h"
#include "tests/support/reference.h"

namespace reformer {
namespace {

// Random ids in [0, n_buckets), of every bit pattern.
at::Tensor random_buckets(at::IntArrayRef sizes, int64_t n_buckets) {
  const auto numbers = normal(sizes, n_buckets).to(at::kDouble);
  return (numbers.abs() * 1e6)
      .to(at::kLong)
      .remainder(n_buckets)
      .to(at::kUInt16);
}

TEST(BucketSort, IsTheStableSortOfTheLibrary) {
  for (const int64_t length : {1, 2, 33, 1000}) {
    for (const int64_t n_buckets : {1, 3, 200, 65536}) {
      for (const auto padding : {Padding::kNone, Padding::kRight,
                                 Padding::kLeft, Padding::kScattered}) {
        const auto buckets = random_buckets({2, 3, 4, length}, n_buckets);
        const auto mask = make_mask(padding, 2, length);
        const auto sorted = bucket_sort(buckets, n_buckets, mask);
        const auto expected = reference::sort(buckets, mask);
        EXPECT_TRUE(sorted.order.equal(expected.order.to(at::kInt)))
            << length << ", " << n_buckets << ", " << name_of(padding);
        EXPECT_TRUE(sorted.place.equal(expected.place.to(at::kInt)))
            << length << ", " << n_buckets << ", " << name_of(padding);
      }
    }
  }
}

TEST(BucketSort, DoesNotLookAtTheBucketsOfPadding) {
  const auto mask = make_mask(Padding::kScattered, 2, 50);
  const auto buckets = random_buckets({2, 1, 2, 50}, 4);
  const auto padded = mask.logical_not().view({2, 1, 1, 50});
  const auto wild =
      buckets.to(at::kLong).masked_fill(padded, 65535).to(at::kUInt16);
  EXPECT_TRUE(bucket_sort(wild, 4, mask)
                  .order.equal(bucket_sort(buckets, 4, mask).order));
}

TEST(BucketSort, TakesBucketsOfAnyStrides) {
  const auto buckets = random_buckets({2, 50, 3, 2}, 8);
  const auto strided = buckets.permute({0, 3, 2, 1});  // [2, 2, 3, 50]
  EXPECT_TRUE(bucket_sort(strided, 8)
                  .order.equal(bucket_sort(strided.contiguous(), 8).order));
}

}  // namespace
}  // namespace reformer
