#include "reformer/ops/lsh_buckets.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "reformer/ops/lsh_rotations.h"
#include "tests/support/cases.h"
#include "tests/support/reference.h"

namespace reformer {
namespace {

constexpr HashKey kKey{/*seed=*/3, /*step=*/1, /*layer=*/4};

at::Tensor hash_on_cuda(const at::Tensor& vectors, const at::Tensor& rotations,
                        int64_t n_buckets) {
  return lsh_buckets(vectors.cuda(), rotations.cuda(), n_buckets)
      .cpu()
      .to(at::kLong);
}

TEST(LshRotationsCuda, AreTheCpusBitForBit) {
  for (const int64_t n_buckets : {2, 6, 128, 1024, 65536}) {
    for (const int64_t d_head : {8, 40, 128}) {
      for (const uint64_t step : {0, 7, 1000000}) {
        const HashKey key{/*seed=*/0x123456789abcdef, step, /*layer=*/3};
        const auto on_cpu = lsh_rotations(key, 7, 9, d_head, n_buckets);
        const auto on_cuda =
            lsh_rotations(key, 7, 9, d_head, n_buckets, at::kCUDA);
        EXPECT_TRUE(on_cuda.cpu().equal(on_cpu))
            << n_buckets << " buckets, d " << d_head << ", step " << step;
      }
    }
  }
}

TEST(LshBucketsCuda, AreTheArgmaxUpToNearTies) {
  for (const int64_t n_buckets : {2, 4, 16, 30, 64, 128, 192, 1024, 65536}) {
    for (const int64_t d_head : {8, 40, 64, 96, 128}) {
      for (const auto type : {at::kBFloat16, at::kFloat}) {
        SCOPED_TRACE(std::to_string(n_buckets) + " buckets, d " +
                     std::to_string(d_head) + ", " + at::toString(type));
        const auto vectors =
            normal({2, 3, 301, d_head}, n_buckets + d_head).to(type);
        const auto rotations =
            lsh_rotations(kKey, 3, /*rounds=*/5, d_head, n_buckets);
        const auto exact = vectors.to(at::kDouble);
        const auto expected =
            lsh_buckets(exact, rotations, n_buckets).to(at::kLong);
        const auto buckets = hash_on_cuda(vectors, rotations, n_buckets);
        EXPECT_LT((buckets != expected).to(at::kDouble).mean().item<double>(),
                  1e-3);
        EXPECT_LT(reference::largest_miss(exact, rotations, n_buckets, buckets),
                  2e-4);
      }
    }
  }
}

TEST(LshBucketsCuda, OfManyRoundsAndRowsAreEachTheirOwn) {
  for (const int64_t length : {1, 15, 33, 3000}) {
    const auto vectors = normal({1, 2, length, 128}, length);
    const auto rotations = lsh_rotations(kKey, 2, /*rounds=*/33, 128, 128);
    const auto expected =
        lsh_buckets(vectors.to(at::kDouble), rotations, 128).to(at::kLong);
    const auto buckets = hash_on_cuda(vectors, rotations, 128);
    EXPECT_LT((buckets != expected).to(at::kDouble).mean().item<double>(),
              1e-3);
  }
}

TEST(LshBucketsCuda, OppositeVectorsLandHalfTheBucketsApart) {
  const auto vectors = normal({1, 2, 100, 64}, 5).to(at::kBFloat16);
  const auto rotations = lsh_rotations(kKey, 2, 3, 64, 16);
  const auto apart = hash_on_cuda(vectors, rotations, 16) -
                     hash_on_cuda(-vectors, rotations, 16);
  EXPECT_TRUE((apart.abs() == 8).all().item<bool>());
}

TEST(LshBucketsCuda, TiesGoToTheFirstColumn) {
  const auto vectors = make_queries(Queries::kZero, {1, 2, 50, 64}, 1);
  const auto rotations = lsh_rotations(kKey, 2, 3, 64, 1024);
  for (const auto type : {at::kBFloat16, at::kFloat}) {
    const auto buckets = hash_on_cuda(vectors.to(type), rotations, 1024);
    EXPECT_TRUE((buckets == 0).all().item<bool>());
  }
  // All of one size: the first column, whatever its sign.
  const auto one = at::zeros({1, 1, 1, 8}, at::kFloat);
  one.select(-1, 0).fill_(1);
  auto signs = at::zeros({1, 1, 8, 8}, at::kFloat);
  for (int64_t j = 0; j < 8; ++j) {
    signs.select(2, 0).select(-1, j).fill_(j % 3 == 1 ? 1 : -1);
  }
  EXPECT_EQ(hash_on_cuda(-one, signs, 16).item<int64_t>(), 0);
  EXPECT_EQ(hash_on_cuda(one, signs, 16).item<int64_t>(), 8);
}

TEST(LshBucketsCuda, TakeAnyStrides) {
  const auto vectors = normal({2, 50, 3, 64}, 9).to(at::kBFloat16).cuda();
  const auto rotations = lsh_rotations(kKey, 3, 4, 64, 64).cuda();
  const auto heads_inside = vectors.transpose(1, 2);
  const auto strided = lsh_buckets(heads_inside, rotations, 64);
  const auto dense = lsh_buckets(heads_inside.contiguous(), rotations, 64);
  EXPECT_TRUE(strided.cpu().equal(dense.cpu()));
  const auto misaligned = normal({2, 3, 50, 65}, 9).cuda().narrow(3, 1, 64);
  EXPECT_TRUE(
      lsh_buckets(misaligned, rotations, 64)
          .cpu()
          .equal(lsh_buckets(misaligned.contiguous(), rotations, 64).cpu()));
}

}  // namespace
}  // namespace reformer
