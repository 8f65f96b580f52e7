#include "reformer/ops/ngram_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>

#include <cstdint>

#include "reformer/base/errors.h"
#include "reformer/config/ngram_limits.h"

namespace reformer {
namespace {

// The finalizer of splitmix64 (Steele et al. 2014): bits without a pattern.
constexpr uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Of the token so many positions back: odd.
constexpr int64_t factor(int64_t back) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  return static_cast<int64_t>(mixed(uint64_t(back + 1) * kGolden) | 1);
}

// Sums of small numbers times constants lie on a lattice: without the second
// multiplication 65% of 65,536 rows had no pair of bytes, by chance it is 37%.
// Shifts are those of a signed number: in the end its sign is masked away.
at::Tensor row_of(const at::Tensor& sum, int64_t rows) {
  return sum.bitwise_xor(sum.bitwise_right_shift(29))
      .mul_(factor(kLongestNgram))
      .bitwise_right_shift_(32)
      .bitwise_and_(INT64_C(0x7fffffff))
      .remainder_(rows);
}

}  // namespace

std::vector<at::Tensor> ngram_rows(const at::Tensor& tokens, int64_t longest,
                                   int64_t rows) {
  constexpr const char* kOp = "ngram_rows";
  require(longest >= 2 && longest <= kLongestNgram, kOp, ": n-grams of 2 to ",
          kLongestNgram, " tokens are possible, got ", longest);
  require(rows >= 1 && rows <= INT32_MAX, kOp,
          ": 1 to 2^31 - 1 rows are required, got ", rows);
  require(tokens.dim() == 2 && tokens.scalar_type() == at::kLong &&
              tokens.size(1) >= longest,
          kOp, ": tokens must be [batch, at least ", longest, "] int64, got ",
          at::toString(tokens.scalar_type()), " ", tokens.sizes());
  const int64_t context = longest - 1;
  const int64_t length = tokens.size(1) - context;
  const auto back = [&](int64_t n) {
    return tokens.narrow(1, context - n, length);
  };
  std::vector<at::Tensor> result;
  auto sum = back(0) * factor(0);
  for (int64_t n = 2; n <= longest; ++n) {
    sum = at::add(sum, back(n - 1), factor(n - 1));
    result.push_back(row_of(sum, rows));
  }
  return result;
}

}  // namespace reformer
