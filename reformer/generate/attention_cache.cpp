#include "reformer/generate/attention_cache.h"

#include <algorithm>

#include "reformer/core/errors.h"
#include "reformer/ops/lsh_attention.h"
#include "reformer/ops/lsh_buckets.h"
#include "reformer/ops/lsh_rotations.h"

namespace reformer {
namespace {

LshConfig decoding_config(const AttentionLayer& layer, const Pass& pass) {
  LshConfig config = layer.lsh();
  config.window = Window::kTrailing;
  if (pass.rounds > 0) config.rounds = pass.rounds;
  return config;
}

// How far back a layer looks; 0: to the beginning.
int64_t reach_of(const AttentionLayer& layer) {
  return layer.kind() == "local" ? 2 * layer.lsh().chunk_length : 0;
}

}  // namespace

AttentionCache::AttentionCache(const AttentionLayer& layer, int64_t batch,
                               const Pass& pass, at::ScalarType type)
    : layer_(layer),
      pass_(pass),
      lsh_(decoding_config(layer, pass)),
      cache_(batch, layer.heads(), layer.d_head(),
             /*shared_qk=*/layer.kind() != "full", type, reach_of(layer)),
      lists_(is_lsh() ? batch * layer.heads() * lsh_.rounds : 0, lsh_.n_buckets,
             lsh_.chunk_length) {
  if (!is_lsh()) return;
  rotations_ = lsh_rotations(layer.hash_key(pass), layer.heads(), lsh_.rounds,
                             layer.d_head(), lsh_.n_buckets);
}

void AttentionCache::hash(const at::Tensor& q, at::Tensor& buckets) const {
  if (!is_lsh()) return;
  if (!buckets.defined()) {
    buckets = lsh_buckets(q, rotations_, lsh_.n_buckets);
  }
  const std::vector<int64_t> sizes = {q.size(0), q.size(1), lsh_.rounds,
                                      q.size(2)};
  require(buckets.sizes() == sizes, "decoder: buckets must be ",
          at::IntArrayRef(sizes), ", got sizes ", buckets.sizes());
}

at::Tensor AttentionCache::attend_whole(const Projected& projected,
                                        at::Tensor& buckets) const {
  if (!is_lsh()) return layer_.attend(projected, pass_, buckets);
  return lsh_attention(projected.q, projected.v, buckets, lsh_);
}

void AttentionCache::append_buckets(const at::Tensor& buckets,
                                    const std::vector<int64_t>& counts) {
  if (!is_lsh()) return;
  const auto ids = buckets.contiguous();  // [batch, heads, rounds, length]
  const uint16_t* bucket = ids.const_data_ptr<uint16_t>();
  const int64_t length = ids.size(3);
  const int64_t per_row = ids.size(1) * ids.size(2);
  for (int64_t round = 0; round < ids.size(0) * per_row; ++round) {
    const int64_t row = round / per_row;
    const int64_t first = cache_.lengths()[row] - counts[row];
    for (int64_t i = 0; i < counts[row]; ++i) {
      lists_.append(round, bucket[round * length + i], first + i);
    }
  }
}

at::Tensor AttentionCache::read(const at::Tensor& x,
                                const std::vector<int64_t>& counts,
                                at::Tensor& buckets) {
  const auto projected = layer_.project(x);
  hash(projected.q, buckets);
  cache_.append(projected.k.defined() ? projected.k : projected.q, projected.v,
                counts);
  append_buckets(buckets, counts);
  return layer_.join(attend_whole(projected, buckets));
}

// What every head of a row sees, LSH rounds aside.
PositionRange AttentionCache::range_of(int64_t position) const {
  const auto last = [&](int64_t n) {
    return PositionRange{std::max<int64_t>(0, position - n), position};
  };
  const auto& kind = layer_.kind();
  if (kind == "full") return {0, position + 1};
  if (kind == "full_shared_qk") return {0, position};
  if (kind == "lsh") return last(lsh_.local_window);
  const int64_t m = lsh_.chunk_length;  // local
  const bool trailing = layer_.lsh().window == Window::kTrailing;
  return last(trailing ? m : m + position % m);  // own and previous chunk
}

std::vector<PositionList> AttentionCache::lists_of(
    const at::Tensor& buckets) const {
  std::vector<PositionList> lists;
  if (!is_lsh()) return lists;
  const auto ids = buckets.contiguous();  // [batch, heads, rounds, 1]
  const uint16_t* bucket = ids.const_data_ptr<uint16_t>();
  lists.reserve(ids.numel());
  for (int64_t round = 0; round < ids.numel(); ++round) {
    lists.push_back(lists_.last(round, bucket[round]));
  }
  return lists;
}

at::Tensor AttentionCache::step(const at::Tensor& x, at::Tensor& buckets) {
  const auto projected = layer_.project(x);
  hash(projected.q, buckets);
  AttendedPositions attended;
  for (const int64_t position : cache_.lengths()) {
    attended.ranges.push_back(range_of(position));
  }
  attended.lists = lists_of(buckets);
  const std::vector<int64_t> one_each(cache_.batch(), 1);
  cache_.append(projected.k.defined() ? projected.k : projected.q, projected.v,
                one_each);
  const auto output = decode_attention(projected.q, cache_, attended);
  append_buckets(buckets, one_each);  // ends the lists above
  return layer_.join(output);
}

}  // namespace reformer
