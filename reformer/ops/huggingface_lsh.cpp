#include "reformer/ops/huggingface_lsh.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

#include "reformer/base/errors.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kHuggingfaceLsh = "huggingface_lsh_attention";

// Scores of what is not seen, and of a position with itself: small enough to
// vanish beside any other, and apart, so that who sees nobody sees itself.
constexpr double kHidden = -1e9;
constexpr double kItself = kHuggingfaceScoreOfItself;

struct Attended {
  at::Tensor output;  // [..., queries, d_head]
  at::Tensor lse;     // [..., queries, 1]
};

//   position_q  [..., queries] int64, position_k [..., keys]
Attended attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                const at::Tensor& position_q, const at::Tensor& position_k) {
  const auto from = position_q.unsqueeze(-1);
  const auto to = position_k.unsqueeze(-2);
  auto scores = at::matmul(q, k.transpose(-1, -2));
  scores = scores.masked_fill(to > from, kHidden);
  scores = scores.masked_fill(to == from, kItself);
  const auto lse = at::logsumexp(scores, {-1}, /*keepdim=*/true);
  return {at::matmul((scores - lse).exp(), v), lse};
}

// Each chunk behind the one before it: [..., chunks, m, n] to [..., chunks,
// 2 m, n], in a circle.
at::Tensor with_chunk_before(const at::Tensor& chunks, int64_t dim) {
  return at::cat({chunks.roll(1, dim), chunks}, dim + 1);
}

// [batch, heads, positions, n] of x [batch, heads, length, n]. Whole rows:
// at::gather takes an index for each element, and on a CPU its gradient nine
// times as long.
at::Tensor gathered(const at::Tensor& x, const at::Tensor& positions) {
  const int64_t heads = x.size(0) * x.size(1);
  const auto first = at::arange(heads, positions.options()) * x.size(2);
  const auto rows = positions + first.view({x.size(0), x.size(1), 1});
  return x.flatten(0, 2)
      .index_select(0, rows.flatten())
      .view({x.size(0), x.size(1), positions.size(2), x.size(3)});
}

void check(const at::Tensor& qk, const at::Tensor& v,
           const at::Tensor& buckets) {
  check_vectors(kHuggingfaceLsh, "qk", qk);
  check_like(kHuggingfaceLsh, "v", v, "qk", qk);
  check_bucket_shape(kHuggingfaceLsh, buckets);
  require(buckets.size(0) == qk.size(0) && buckets.size(1) == qk.size(1) &&
              buckets.size(3) == qk.size(2),
          kHuggingfaceLsh, ": buckets must be [", qk.size(0), ", ", qk.size(1),
          ", rounds, ", qk.size(2), "] for this qk, got sizes ",
          buckets.sizes());
}

// [batch, heads, rounds, padded] int64: the position at each place; padding
// comes last.
at::Tensor sorted_positions(const at::Tensor& buckets, int64_t n_buckets,
                            int64_t padded) {
  const auto ids = buckets.to(at::kInt);
  return at::argsort(
      at::constant_pad_nd(ids, {0, padded - ids.size(3)}, n_buckets),
      /*stable=*/true, /*dim=*/3, /*descending=*/false);
}

}  // namespace

int64_t HuggingfaceLsh::n_buckets() const {
  return std::accumulate(factors.begin(), factors.end(), int64_t{1},
                         std::multiplies<>());
}

int64_t HuggingfaceLsh::padded(int64_t length) const {
  if (length <= shortest) return length;
  return (length + multiple - 1) / multiple * multiple;
}

HuggingfaceLsh huggingface_lsh(const Config& config) {
  const int64_t lsh = config.lsh.chunk_length;
  const bool local =
      config.model.attention.contains(AttentionKind::kLocalSeparateQk);
  const int64_t other = local ? local_chunk_length(config) : lsh;
  return {lsh, std::lcm(lsh, other), std::min(lsh, other),
          config.model.bucket_factors};
}

at::Tensor huggingface_lsh_buckets(const at::Tensor& qk,
                                   const at::Tensor& rotations,
                                   const std::vector<int64_t>& factors) {
  const at::NoGradGuard no_grad;
  check_vectors(kHuggingfaceLsh, "qk", qk);
  const auto vectors = qk.detach().to(at::kFloat);
  auto buckets =
      at::empty({qk.size(0), qk.size(1), rotations.size(1), qk.size(2)},
                qk.options().dtype(at::kUInt16));
  for (int64_t round = 0; round < rotations.size(1); ++round) {
    const auto rotated = at::matmul(vectors, rotations.select(1, round));
    at::Tensor id;
    int64_t column = 0;
    int64_t weight = 1;
    for (const int64_t factor : factors) {
      const auto part = rotated.narrow(3, column, factor / 2);
      // Of [r; -r], the first where several are largest.
      const auto [most, at_most] = part.max(3);
      const auto [least, at_least] = part.min(3);
      const auto digit =
          at::where(most >= -least, at_most, at_least + factor / 2) * weight;
      id = id.defined() ? id + digit : digit;
      column += factor / 2;
      weight *= factor;
    }
    buckets.select(2, round).copy_(id);
  }
  return buckets;
}

at::Tensor huggingface_keys(const at::Tensor& qk) {
  constexpr double kEpsilon = 1e-6;
  const auto d_head = double(qk.size(-1));
  return qk *
         qk.square().sum(-1, /*keepdim=*/true).add(kEpsilon * d_head).rsqrt();
}

at::Tensor huggingface_lsh_attention(const at::Tensor& qk, const at::Tensor& v,
                                     const at::Tensor& buckets,
                                     const HuggingfaceLsh& config) {
  check(qk, v, buckets);
  const int64_t length = qk.size(2);
  const auto positions = [&](int64_t n) {
    return at::arange(n, at::TensorOptions(qk.device()).dtype(at::kLong));
  };
  if (config.sees_all(length)) {
    const auto all = positions(length);
    return attend(qk, huggingface_keys(qk), v, all, all).output;
  }
  const int64_t padded = config.padded(length);
  const int64_t rounds = buckets.size(2);
  const int64_t m = config.chunk_length;
  const auto order =  // [batch, heads, rounds * padded]
      sorted_positions(buckets, config.n_buckets(), padded).flatten(2);
  const auto chunks = [&](const at::Tensor& x) {
    // Padding repeats the last position's elements; nobody sees them.
    return gathered(x, order.clamp_max(length - 1))
        .unflatten(2, {rounds * padded / m, m});
  };
  const auto sorted_qk = chunks(qk);  // [batch, heads, chunks, m, d_head]
  const auto place = order.unflatten(2, {rounds * padded / m, m});
  const auto [output, lse] = attend(
      sorted_qk, with_chunk_before(huggingface_keys(sorted_qk), 2),
      with_chunk_before(chunks(v), 2), place, with_chunk_before(place, 2));
  // Back to positions, [batch, heads, rounds, length, ...].
  const auto undone =
      at::argsort(order.view({order.size(0), order.size(1), rounds, padded}),
                  /*stable=*/true, /*dim=*/3,
                  /*descending=*/false)
          .narrow(3, 0, length);
  const auto first = at::arange(rounds, undone.options()) * padded;
  const auto places = (undone + first.view({-1, 1})).flatten(2);
  const auto back = [&](const at::Tensor& x) {
    return gathered(x.flatten(2, 3), places).unflatten(2, {rounds, length});
  };
  const auto of_rounds = back(lse);
  const auto share =
      (of_rounds - at::logsumexp(of_rounds, {2}, /*keepdim=*/true)).exp();
  return (back(output) * share).sum(2);
}

at::Tensor huggingface_attend_next(const at::Tensor& q, const at::Tensor& k,
                                   const at::Tensor& v,
                                   const at::Tensor& hidden,
                                   const at::Tensor& itself) {
  auto scores = at::matmul(q, k.transpose(1, 2)).squeeze(1);  // [heads, n]
  scores = scores.masked_fill(hidden, kHidden).masked_fill(itself, kItself);
  // A softmax for each round, joined by their denominators, is one over all.
  return at::matmul(scores.softmax(1).unsqueeze(1), v);
}

}  // namespace reformer
