#include "reformer/ops/embedding_gradient.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "reformer/base/errors.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

at::Tensor some_indices(int64_t count, int64_t rows) {
  return (normal({count}, 7).abs() * double(rows) / 2)
      .to(at::kLong)
      .remainder(rows);
}

TEST(EmbeddingGradient, AddsToEachRowWhatItsLookupsGet) {
  for (const int64_t count : {1, 33, 1000}) {
    const int64_t rows = 17;
    const auto indices = some_indices(count, rows);
    const auto d = normal({count, 12}, 1).to(at::kDouble);
    const auto before = normal({rows, 12}, 2).to(at::kDouble);
    auto expected = before.clone();
    for (int64_t n = 0; n < count; ++n) {
      expected[indices[n].item<int64_t>()] += 3 * d[n];
    }
    const auto sum = before.clone();
    add_embedding_gradient(sum, indices, d, /*scale=*/3);
    EXPECT_LT((sum - expected).abs().max().item<double>(), 1e-12);
  }
}

TEST(EmbeddingGradient, TakesColumnsOfALargerTensor) {
  const auto indices = some_indices(100, 5);
  const auto wide = normal({100, 30}, 1);
  const auto whole = at::zeros({5, 30});
  const auto columns = at::zeros({5, 7});
  add_embedding_gradient(whole, indices, wide);
  add_embedding_gradient(columns, indices, wide.narrow(1, 11, 7));
  EXPECT_TRUE(columns.equal(whole.narrow(1, 11, 7)));
}

TEST(EmbeddingGradient, RefusesSizesAndTypesThatDoNotFit) {
  const auto sum = at::zeros({5, 8});
  const auto d = at::zeros({10, 8});
  const auto indices = at::zeros({10}, at::kLong);
  EXPECT_THROW(add_embedding_gradient(sum, indices, d.narrow(0, 0, 9)), Error);
  EXPECT_THROW(add_embedding_gradient(sum, indices, d.narrow(1, 0, 7)), Error);
  EXPECT_THROW(add_embedding_gradient(sum, indices.to(at::kInt), d), Error);
  EXPECT_THROW(add_embedding_gradient(sum, indices, d.to(at::kDouble)), Error);
}

}  // namespace
}  // namespace reformer
