#include "tests/support/reference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

#include "reformer/config/bucket_count.h"

namespace reformer::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [batch, 1, length, 1], true where padded.
at::Tensor padded_rows(const at::Tensor& mask) {
  return mask.logical_not().unsqueeze(1).unsqueeze(-1);
}

at::Tensor without_padding(const at::Tensor& x, const at::Tensor& mask) {
  return mask.defined() ? x.masked_fill(padded_rows(mask), 0) : x;
}

// Pairs of positions that are both real: [batch, 1, length, length].
at::Tensor real_pairs(const at::Tensor& mask) {
  return (mask.unsqueeze(1) & mask.unsqueeze(2)).unsqueeze(1);
}

at::Tensor not_self(int64_t length) {
  return at::eye(length, at::kBool).logical_not();
}

// Pairs of places [.., length] that a window of m places allows.
at::Tensor within_window(const at::Tensor& place, Window window, int64_t m,
                         bool causal) {
  const auto i = place.unsqueeze(-1);
  const auto j = place.unsqueeze(-2);
  at::Tensor allowed;
  if (window == Window::kChunk) {
    const auto chunks_back = i.floor_divide(m) - j.floor_divide(m);
    allowed = (chunks_back == 0) | (chunks_back == 1);
  } else {
    allowed = (i - j).abs() <= m;
  }
  return causal ? allowed & (j < i) : allowed;
}

at::Tensor scores_of(const at::Tensor& q, const at::Tensor& k) {
  if (!k.defined()) return q.matmul(unit_keys(q).transpose(-2, -1));
  return q.matmul(k.transpose(-2, -1)) / std::sqrt(double(q.size(-1)));
}

}  // namespace

at::Tensor rotated(const at::Tensor& vectors, const at::Tensor& rotations) {
  return vectors.to(at::kDouble)
      .unsqueeze(2)
      .matmul(rotations.to(at::kDouble).unsqueeze(0));
}

at::Tensor hash(const at::Tensor& vectors, const at::Tensor& rotations,
                int64_t n_buckets) {
  const auto columns = rotated(vectors, rotations);
  at::Tensor bucket;
  int64_t begin = 0;
  for (const int64_t factor : bucket_factors(n_buckets)) {
    const auto own = columns.narrow(-1, begin, factor / 2);
    const auto digit = at::cat({own, -own}, -1).argmax(-1);
    bucket = bucket.defined() ? bucket * factor + digit : digit;
    begin += factor / 2;
  }
  return bucket;
}

double largest_miss(const at::Tensor& vectors, const at::Tensor& rotations,
                    int64_t n_buckets, const at::Tensor& buckets) {
  const auto columns = rotated(vectors, rotations);
  double miss = 0;
  int64_t begin = columns.size(-1);
  auto digits = buckets;
  const auto factors = bucket_factors(n_buckets);
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
    begin -= *factor / 2;
    const auto own = columns.narrow(-1, begin, *factor / 2);
    const auto both = at::cat({own, -own}, -1);
    const auto digit = digits.remainder(*factor).unsqueeze(-1);
    const auto behind = both.amax(-1) - both.gather(-1, digit).squeeze(-1);
    miss = std::max(miss, behind.max().item<double>());
    digits = digits.floor_divide(*factor);
  }
  return miss;
}

SortedRounds sort(const at::Tensor& buckets, const at::Tensor& mask) {
  const int64_t length = buckets.size(-1);
  const auto position = at::arange(length, at::kLong);
  auto key = buckets.to(at::kLong) * length + position;
  if (mask.defined()) {
    const auto padded = mask.logical_not().unsqueeze(1).unsqueeze(1);
    key = at::where(padded, (int64_t{1} << 40) + position, key);
  }
  const auto order = key.argsort(/*stable=*/true, -1, /*descending=*/false);
  const auto place = at::empty_like(order).scatter_(
      -1, order, position.expand_as(order).contiguous());
  return {order, place.transpose(-2, -1)};
}

AttendedSets attended_sets(const at::Tensor& buckets, const LshConfig& config,
                           const at::Tensor& mask) {
  const int64_t length = buckets.size(-1);
  const auto allowed =
      mask.defined() ? real_pairs(mask) & not_self(length) : not_self(length);
  AttendedSets sets;
  if (config.local_window > 0) {
    const auto natural =
        sort(at::zeros_like(buckets.select(2, 0)).unsqueeze(2), mask)
            .place.select(-1, 0);
    sets.push_back(allowed & within_window(natural, Window::kTrailing,
                                           config.local_window, config.causal));
  }
  const auto places = sort(buckets, mask).place;
  for (int64_t round = 0; round < buckets.size(2); ++round) {
    const auto bucket = buckets.select(2, round).to(at::kInt);
    const auto same = bucket.unsqueeze(-1) == bucket.unsqueeze(-2);
    sets.push_back(allowed & same &
                   within_window(places.select(-1, round), config.window,
                                 config.chunk_length, config.causal));
  }
  return sets;
}

AttendedSets attended_sets(const IntervalRounds& rounds, bool self_counts) {
  const int64_t length = rounds.place.size(2);
  AttendedSets sets;
  for (int64_t round = 0; round < rounds.place.size(3); ++round) {
    const auto place = rounds.place.select(3, round).unsqueeze(-2);
    const auto begin = rounds.interval.select(4, 0).select(3, round);
    const auto end = rounds.interval.select(4, 1).select(3, round);
    auto set = (place >= begin.unsqueeze(-1)) & (place < end.unsqueeze(-1));
    sets.push_back(self_counts ? set : set & not_self(length));
  }
  return sets;
}

at::Tensor everything(int64_t batch, int64_t length, bool causal,
                      bool self_counts, const at::Tensor& mask) {
  auto set = at::ones({batch, 1, length, length}, at::kBool);
  if (causal) set = set.tril();
  if (!self_counts) set = set & not_self(length);
  return mask.defined() ? set & real_pairs(mask) : set;
}

at::Tensor union_of(const AttendedSets& sets) {
  auto all = sets.front().clone();
  for (std::size_t round = 1; round < sets.size(); ++round) all |= sets[round];
  return all;
}

at::Tensor unit_keys(const at::Tensor& q) {
  const auto squares = q.square().sum(-1, /*keepdim=*/true);
  const auto small = squares.detach().sqrt() <= 1e-6;
  // The root of 0 has no gradient: it must not be taken, even if not used.
  return (q / squares.masked_fill(small, 1).sqrt()).masked_fill(small, 0);
}

at::Tensor offered(const at::Tensor& v, const at::Tensor& mask,
                   int64_t successor_heads) {
  std::vector<at::Tensor> rows;
  for (int64_t b = 0; b < v.size(0); ++b) {
    auto next = at::arange(v.size(2), at::kLong);
    int64_t last = -1;
    for (int64_t i = 0; i < v.size(2); ++i) {
      if (mask.defined() && !mask[b][i].item<bool>()) continue;
      if (last >= 0) next[last] = i;
      last = i;
    }
    rows.push_back(at::cat(
        {v[b].narrow(0, 0, successor_heads).index_select(1, next),
         v[b].narrow(0, successor_heads, v.size(1) - successor_heads)}));
  }
  return at::stack(rows);
}

AttentionResult attention(const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const at::Tensor& attended,
                          const at::Tensor& mask, int64_t successor_heads) {
  const auto values = without_padding(v, mask);
  const auto scores = scores_of(without_padding(q, mask),
                                k.defined() ? without_padding(k, mask) : k);
  // Who has nobody attends to itself, whatever others offer. The padded do too,
  // and find 0.
  const auto alone = attended.any(-1, /*keepdim=*/true).logical_not();
  const auto self = at::eye(q.size(2), at::kBool);
  const auto none = (attended | (alone & self)).logical_not();
  const auto lse = scores.detach()
                       .masked_fill(attended.logical_not(), -kInfinity)
                       .logsumexp(-1);
  const auto weights = scores.masked_fill(none, -kInfinity).softmax(-1);
  const auto output = at::where(
      alone, values, weights.matmul(offered(values, mask, successor_heads)));
  return {without_padding(output, mask), lse};
}

AttentionResult attention_by_rounds(const at::Tensor& qk, const at::Tensor& v,
                                    const AttendedSets& sets,
                                    const at::Tensor& mask) {
  const auto values = without_padding(v, mask);
  const auto scores = scores_of(without_padding(qk, mask), /*k=*/{});
  auto found = sets.front().to(scores.scalar_type());  // N_ij
  for (std::size_t r = 1; r < sets.size(); ++r) found = found + sets[r];
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> lses;
  for (const auto& set : sets) {
    const auto own =
        (scores - found.log()).masked_fill(set.logical_not(), -kInfinity);
    const auto lse = own.logsumexp(-1);
    const auto empty = set.any(-1).logical_not();
    const auto weights = (own - lse.masked_fill(empty, 0).unsqueeze(-1)).exp();
    outputs.push_back(weights.matmul(values));
    lses.push_back(lse);
  }
  const auto lse = at::stack(lses).logsumexp(0);
  const auto alone = lse == -kInfinity;
  auto output = values.mul(alone.unsqueeze(-1));
  for (std::size_t r = 0; r < sets.size(); ++r) {
    const auto share = (lses[r] - lse.masked_fill(alone, 0)).exp();
    output = output + outputs[r] * share.unsqueeze(-1);
  }
  return {without_padding(output, mask), lse};
}

}  // namespace reformer::reference
