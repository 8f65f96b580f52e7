#include "reformer/generate/attention_cache.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/generate/decoded_attention.h"
#include "reformer/model/ngram_buckets.h"
#include "reformer/model/parts.h"
#include "reformer/ops/checks.h"
#include "reformer/ops/lsh_buckets.h"
#include "reformer/ops/lsh_rotations.h"

namespace reformer {
namespace {

constexpr const char* kOp = "decoder";

// Positions that matrices are multiplied with before somebody may stop it: less
// than a second at a width of 1024 on two cores.
constexpr int64_t kPart = 16384;

// Positions times heads that attend before others get their turn, by 4 rounds a
// twentieth of a second on two cores.
constexpr int64_t kAttended = 65536;

}  // namespace

AttentionCache::AttentionCache(const AttentionLayer& layer, int64_t batch,
                               const Pass& pass, const Placement& placement)
    : layer_(layer),
      pass_(pass),
      recent_(layer, batch, placement),
      lsh_(decoding_lsh(layer, pass)) {
  if (layer.kind() == AttentionKind::kLshHuggingface) {
    huggingface_.emplace(layer.huggingface(),
                         HuggingfaceCacheConfig{
                             batch, layer.heads(), lsh_.rounds, layer.d_head(),
                             placement.compute, placement.device});
    rotations_ = layer.huggingface_rotations(pass, placement.device);
    return;
  }
  const int64_t hashed = is_lsh() ? layer.hashed_heads() : 0;
  const int64_t others = layer.heads() - hashed;
  if (hashed > 0) groups_.push_back(group(0, hashed, true, batch, placement));
  if (others > 0) {
    groups_.push_back(group(hashed, others, false, batch, placement));
  }
  if (!is_lsh()) return;
  rotations_ = lsh_rotations(layer.hash_key(pass), hashed, lsh_.rounds,
                             layer.d_head(), lsh_.n_buckets, placement.device);
}

AttentionCache::HeadGroup AttentionCache::group(
    int64_t first, int64_t count, bool hashed, int64_t batch,
    const Placement& placement) const {
  const int64_t rounds = hashed ? bucket_rounds(lsh_) : 0;
  KeyValueConfig config;
  config.batch = batch;
  config.heads = count;
  config.d_head = layer_.d_head();
  config.shared_qk = !has_own_keys(layer_.kind());
  config.successor_heads =
      std::clamp<int64_t>(layer_.successor_heads() - first, 0, count);
  config.type = placement.compute;
  if (is_local(layer_.kind())) {
    config.reach = 2 * layer_.local().chunk_length;
  } else if (is_lsh() && !hashed) {
    config.reach = layer_.near_window() + 1;
  }
  config.rounds = placement.device.is_cuda() ? rounds : 0;
  config.device = placement.device;
  return {
      first, count, KeyValueCache(config),
      BucketHistory({batch, count, rounds, lsh_.n_buckets, lsh_.chunk_length,
                     rounds_together(layer_.lsh(), rounds)},
                    placement.device),
      earlier_positions(layer_, hashed)};
}

void AttentionCache::require_buckets(const at::Tensor& buckets,
                                     int64_t length) const {
  const int64_t batch =
      huggingface_ ? huggingface_->config().batch : groups_[0].cache.batch();
  const std::vector<int64_t> sizes = {batch, layer_.hashed_heads(),
                                      bucket_rounds(lsh_), length};
  check_bucket_shape(kOp, buckets);
  require(buckets.sizes() == sizes, kOp, ": buckets must be ",
          at::IntArrayRef(sizes), ", got sizes ", buckets.sizes());
  const auto device = rotations_.device();
  require(buckets.device() == device, kOp, ": buckets must be on ",
          device.str(), ", got ", buckets.device().str());
}

void AttentionCache::check_given(const at::Tensor& buckets,
                                 int64_t length) const {
  if (!hashes() || !buckets.defined()) return;
  require_buckets(buckets, length);
  check_bucket_range(kOp, buckets.cpu(), lsh_.n_buckets, /*mask=*/{});
}

void AttentionCache::hash(const at::Tensor& q, const at::Tensor& ngrams,
                          at::Tensor& buckets) const {
  if (!hashes()) return;
  if (!buckets.defined()) {
    buckets = huggingface_
                  ? huggingface_lsh_buckets(q, rotations_,
                                            layer_.huggingface().factors)
                  : append_ngrams(lsh_buckets(groups_[0].of(q), rotations_,
                                              lsh_.n_buckets),
                                  ngrams);
  }
  require_buckets(buckets, q.size(2));
}

// As the layer's, a part of the positions at a time.
Projected AttentionCache::project(const at::Tensor& x) const {
  const int64_t length = x.size(1);
  if (length <= kPart) return layer_.project(x);
  Projected all;
  const auto put = [&](at::Tensor& whole, const at::Tensor& part, int64_t at) {
    if (!part.defined()) return;
    if (!whole.defined()) {  // in memory as the projection of the whole
      whole = at::empty({x.size(0), length, part.size(1), part.size(3)},
                        part.options())
                  .transpose(1, 2);
    }
    whole.narrow(2, at, part.size(2)).copy_(part);
  };
  for_each_part(length, kPart, [&](int64_t at, int64_t n) {
    interruption_point();
    const auto part = layer_.project(x.narrow(1, at, n));
    put(all.q, part.q, at);
    put(all.k, part.k, at);
    put(all.v, part.v, at);
  });
  return all;
}

// Each head by itself, as all together, is the same bits.
at::Tensor AttentionCache::attend(const Projected& turned,
                                  const at::Tensor& buckets) const {
  const at::Tensor& q = turned.q;
  const int64_t heads = q.size(1);
  LshConfig lsh = lsh_;
  lsh.rounds = layer_.lsh().rounds;  // of training: groups have as many
  const int64_t some =
      std::max<int64_t>(1, kAttended / (q.size(0) * q.size(2)));
  if (!takes_turns() || !q.is_cpu() || heads <= some) {
    return layer_.attend(turned, buckets, /*mask=*/{}, lsh);
  }
  const auto all =  // in memory as the output's projection reads them
      at::empty({q.size(0), q.size(2), heads, q.size(3)}, q.options())
          .transpose(1, 2);
  for_each_part(heads, some, [&](int64_t at, int64_t n) {
    interruption_point();
    const auto of = [&](const at::Tensor& x) {
      return x.defined() ? x.narrow(1, at, n) : x;
    };
    all.narrow(1, at, n).copy_(layer_.attend(
        {of(q), of(turned.k), of(turned.v)}, buckets, /*mask=*/{}, lsh, at));
  });
  return all;
}

void AttentionCache::read(const at::Tensor& x,
                          const std::vector<int64_t>& counts,
                          const at::Tensor& ngrams, at::Tensor& buckets,
                          const at::Tensor& y) {
  auto projected = project(x);
  recent_.read(projected, counts);
  projected = layer_.convolved(projected);
  hash(projected.q, ngrams, buckets);
  interruption_point();
  const auto turned = layer_.turned(projected);
  interruption_point();
  for (auto& group : groups_) {
    const auto first = group.cache.lengths();
    group.cache.append(
        group.of(turned.k.defined() ? turned.k : turned.q), group.of(turned.v),
        counts, group.cache.config().rounds > 0 ? buckets : at::Tensor());
    if (group.history.shape().rounds > 0) {
      group.history.append(buckets, first, counts);
    }
    interruption_point();
  }
  const auto attended =
      huggingface_ ? huggingface_->read(turned.q, turned.v, buckets, counts)
                   : attend(turned, buckets);
  for_each_part(x.size(1), kPart, [&](int64_t at, int64_t n) {
    interruption_point();
    y.narrow(1, at, n).add_(layer_.join(attended.narrow(2, at, n)));
  });
}

bool AttentionCache::extend(int64_t rows) {
  bool moved = false;
  for (auto& group : groups_) {
    std::vector<int64_t> counts(group.cache.batch(), 0);
    std::fill_n(counts.begin(), rows, 1);
    moved = group.cache.extend(counts) || moved;
  }
  return moved;
}

void AttentionCache::use_rows(int64_t rows) {
  recent_.use_rows(rows);
  if (huggingface_) huggingface_->use_rows(rows);
  for (auto& group : groups_) {
    group.cache.use_rows(rows);
    group.history.use_rows(rows);
  }
}

void AttentionCache::take_row(int64_t row, AttentionCache& one) {
  recent_.take_row(row, one.recent_);
  if (huggingface_) huggingface_->take_row(row, *one.huggingface_);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].cache.take_row(row, one.groups_[i].cache);
    groups_[i].history.take_row(row, one.groups_[i].history);
  }
}

void AttentionCache::move_row(int64_t from, int64_t to) {
  recent_.move_row(from, to);
  if (huggingface_) huggingface_->move_row(from, to);
  for (auto& group : groups_) {
    group.cache.move_row(from, to);
    group.history.move_row(from, to);
  }
}

void AttentionCache::clear_row(int64_t row) {
  recent_.clear_row(row);
  if (huggingface_) huggingface_->clear_row(row);
  for (auto& group : groups_) {
    group.cache.clear_row(row);
    group.history.clear_row(row);
  }
}

void AttentionCache::step(const at::Tensor& x, const at::Tensor& position,
                          const at::Tensor& ngrams, at::Tensor& buckets,
                          const at::Tensor& y) {
  const auto projected = recent_.next(layer_.project(x));
  hash(projected.q, ngrams, buckets);
  const auto [q, k, v] = layer_.turned(projected, position);
  std::vector<at::Tensor> attended;
  if (huggingface_) attended.push_back(huggingface_->step(q, v, buckets));
  for (auto& group : groups_) {
    const bool hashed = group.history.shape().rounds > 0;
    attended.push_back(attend_next({group.of(q), group.of(k), group.of(v),
                                    hashed ? buckets : at::Tensor(), position},
                                   group.earlier, group.cache, group.history));
  }
  layer_.add_joined(attended.size() == 1 ? attended[0] : at::cat(attended, 1),
                    y);
}

}  // namespace reformer
