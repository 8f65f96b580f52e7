#include "reformer/ops/embedding_gradient.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/support/cases.h"

namespace reformer {
namespace {

const auto kFloatThere = at::TensorOptions(at::kCUDA).dtype(at::kFloat);

// Like the bytes of a text: few are most.
at::Tensor uneven_indices(int64_t count, int64_t rows) {
  return (normal({count}, 7).pow_(4) * double(rows) / 8)
      .to(at::kLong)
      .remainder(rows);
}

at::Tensor gradient_there(const at::Tensor& indices, const at::Tensor& d,
                          int64_t rows) {
  const auto sum = at::full({rows, d.size(1)}, 0.5, kFloatThere);
  add_embedding_gradient(sum, indices.cuda(), d, /*scale=*/2);
  return sum;
}

// Against float64 on the CPU; every row is a sum of at most `count` numbers.
void expect_right(const at::Tensor& indices, int64_t rows, int64_t width) {
  SCOPED_TRACE(testing::Message() << indices.size(0) << " of " << rows
                                  << " rows, width " << width);
  const auto d = normal({indices.size(0), width}, 3);
  const auto found = gradient_there(indices, d.cuda(), rows).cpu();
  const auto exact = at::full({rows, width}, 0.5, at::kDouble);
  add_embedding_gradient(exact, indices, d.to(at::kDouble), /*scale=*/2);
  const auto size = at::zeros({rows, width}, at::kDouble);
  add_embedding_gradient(size, indices, d.to(at::kDouble).abs(), /*scale=*/2);
  EXPECT_TRUE((found.to(at::kDouble) - exact)
                  .abs()
                  .le(size.add_(0.5).mul_(0x1p-18))
                  .all()
                  .item<bool>());
}

TEST(EmbeddingGradientCuda, IsTheCpusAtEverySize) {
  for (const int64_t count : {1, 31, 32, 33, 64, 1000, 3072, 3073, 65536}) {
    for (const int64_t rows : {1, 2, 129, 257, 5000}) {
      expect_right(uneven_indices(count, rows), rows, 96);
    }
  }
  for (const int64_t width : {1, 33, 128, 129, 512}) {
    expect_right(uneven_indices(10'000, 257), 257, width);
  }
}

// Runs of all lengths across pieces of 32 lookups, and one that is everything.
TEST(EmbeddingGradientCuda, JoinsRunsThatCrossPieces) {
  for (const int64_t run : {16, 31, 32, 33, 48, 64, 95, 96, 1024, 4000}) {
    std::vector<int64_t> indices;
    for (int64_t n = 0; n < 12'000; ++n) indices.push_back(n / run);
    expect_right(at::tensor(indices, at::kLong), indices.back() + 1, 40);
  }
  expect_right(at::zeros({50'000}, at::kLong), 3, 40);
}

// More rows than bucket_sort knows buckets.
TEST(EmbeddingGradientCuda, TakesLargeVocabularies) {
  expect_right(uneven_indices(20'000, 100'000), 100'000, 16);
}

TEST(EmbeddingGradientCuda, GivesTheSameBitsEveryTime) {
  const auto indices = uneven_indices(65536, 257);
  const auto d = normal({65536, 512}, 1).cuda();
  const auto once = gradient_there(indices, d, 257);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(gradient_there(indices, d, 257).equal(once));
  }
}

TEST(EmbeddingGradientCuda, TakesColumnsOfALargerTensor) {
  const auto indices = uneven_indices(5000, 100);
  const auto wide = normal({5000, 70}, 1).cuda();
  const auto whole = gradient_there(indices, wide, 100);
  const auto columns = gradient_there(indices, wide.narrow(1, 13, 33), 100);
  EXPECT_TRUE(columns.equal(whole.narrow(1, 13, 33)));
}

}  // namespace
}  // namespace reformer
