// q, k and v may be views of any strides, overlapping or not.
#include "tests/support/odd_views.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "reformer/generate/attend_next.h"
#include "reformer/ops/lsh_buckets.h"
#include "reformer/ops/lsh_rotations.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

TEST(OddViews, AttendAsTheirCopiesDo) {
  expect_views_are_copies(at::TensorOptions().dtype(at::kDouble), 1e-12);
  expect_views_are_copies(at::TensorOptions().dtype(at::kFloat), 1e-5);
}

TEST(OddViews, HashAsTheirCopiesDo) {
  const auto numbers = normal({kOddViewNumbers}, 1);
  const auto rotations = lsh_rotations(HashKey{}, 3, 2, 16, 8);
  for (const auto& view : odd_views()) {
    const auto x = view.of(numbers);
    EXPECT_TRUE(at::equal(
        lsh_buckets(x, rotations, 8).to(at::kInt),
        lsh_buckets(x.clone(at::MemoryFormat::Contiguous), rotations, 8)
            .to(at::kInt)))
        << view.name;
  }
}

TEST(OddViews, AreRememberedAsTheirCopies) {
  const auto numbers = normal({kOddViewNumbers}, 1);
  const auto attended = [](const at::Tensor& x) {
    KeyValueConfig config;
    config.batch = 2;
    config.heads = 3;
    config.d_head = 16;
    KeyValueCache cache(config);
    cache.append(x, x, {37, 20});
    AttendedPositions all;
    all.ranges = {{0, 37}, {0, 20}};
    return attend_next(x.narrow(2, 5, 1), cache, all);
  };
  for (const auto& view : odd_views()) {
    const auto x = view.of(numbers);
    EXPECT_TRUE(
        at::equal(attended(x), attended(x.clone(at::MemoryFormat::Contiguous))))
        << view.name;
  }
}

}  // namespace
}  // namespace reformer
