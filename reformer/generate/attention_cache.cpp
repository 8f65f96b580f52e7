#include "reformer/generate/attention_cache.h"

#include <ATen/ops/empty.h>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/generate/decoded_attention.h"
#include "reformer/model/parts.h"
#include "reformer/ops/checks.h"
#include "reformer/ops/lsh_attention.h"
#include "reformer/ops/lsh_buckets.h"
#include "reformer/ops/lsh_rotations.h"

namespace reformer {
namespace {

constexpr const char* kOp = "decoder";

// Positions that matrices are multiplied with before somebody may stop it: less
// than a second at a width of 1024 on two cores.
constexpr int64_t kPart = 16384;

KeyValueConfig cache_config(const AttentionLayer& layer, int64_t batch,
                            const Placement& placement, int64_t rounds) {
  KeyValueConfig config;
  config.batch = batch;
  config.heads = layer.heads();
  config.d_head = layer.d_head();
  config.shared_qk = layer.kind() != AttentionKind::kFull;
  config.successor_heads = layer.successor_heads();
  config.type = placement.compute;
  if (layer.kind() == AttentionKind::kLocal)
    config.reach = 2 * layer.lsh().chunk_length;
  const bool lsh_on_gpu =
      layer.kind() == AttentionKind::kLsh && placement.device.is_cuda();
  config.marks = lsh_on_gpu ? rounds : 0;
  config.device = placement.device;
  return config;
}

}  // namespace

AttentionCache::AttentionCache(const AttentionLayer& layer, int64_t batch,
                               const Pass& pass, const Placement& placement)
    : layer_(layer),
      pass_(pass),
      lsh_(decoding_lsh(layer, pass)),
      cache_(cache_config(layer, batch, placement, lsh_.rounds)),
      history_({batch, layer.heads(), is_lsh() ? lsh_.rounds : 0,
                lsh_.n_buckets, lsh_.chunk_length},
               placement.device) {
  if (!is_lsh()) return;
  rotations_ = lsh_rotations(layer.hash_key(pass), layer.heads(), lsh_.rounds,
                             layer.d_head(), lsh_.n_buckets, placement.device);
}

void AttentionCache::require_buckets(const at::Tensor& buckets,
                                     int64_t length) const {
  const std::vector<int64_t> sizes = {cache_.batch(), cache_.heads(),
                                      lsh_.rounds, length};
  check_bucket_shape(kOp, buckets);
  require(buckets.sizes() == sizes, kOp, ": buckets must be ",
          at::IntArrayRef(sizes), ", got sizes ", buckets.sizes());
  const auto device = cache_.config().device;
  require(buckets.device() == device, kOp, ": buckets must be on ",
          device.str(), ", got ", buckets.device().str());
}

void AttentionCache::check_given(const at::Tensor& buckets,
                                 int64_t length) const {
  if (!is_lsh() || !buckets.defined()) return;
  require_buckets(buckets, length);
  check_bucket_range(kOp, buckets.cpu(), lsh_.n_buckets, /*mask=*/{});
}

void AttentionCache::hash(const at::Tensor& q, at::Tensor& buckets) const {
  if (!is_lsh()) return;
  if (!buckets.defined()) {
    buckets = lsh_buckets(q, rotations_, lsh_.n_buckets);
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

at::Tensor AttentionCache::attend_whole(const Projected& turned,
                                        const at::Tensor& buckets) const {
  if (!is_lsh()) return layer_.attend(turned, buckets);
  return lsh_attention(turned.q, turned.v, buckets, lsh_, /*mask=*/{},
                       layer_.successor_heads());
}

void AttentionCache::read(const at::Tensor& x,
                          const std::vector<int64_t>& counts,
                          at::Tensor& buckets, const at::Tensor& y) {
  const auto projected = project(x);
  hash(projected.q, buckets);
  interruption_point();
  const auto turned = layer_.turned(projected);
  interruption_point();
  const auto first = cache_.lengths();
  cache_.append(turned.k.defined() ? turned.k : turned.q, turned.v, counts,
                cache_.config().marks > 0 ? buckets : at::Tensor());
  history_.append(buckets, first, counts);
  interruption_point();
  const auto attended = attend_whole(turned, buckets);
  for_each_part(x.size(1), kPart, [&](int64_t at, int64_t n) {
    interruption_point();
    y.narrow(1, at, n).add_(layer_.join(attended.narrow(2, at, n)));
  });
}

bool AttentionCache::extend() {
  return cache_.extend(std::vector<int64_t>(cache_.batch(), 1));
}

void AttentionCache::step(const at::Tensor& x, const at::Tensor& position,
                          at::Tensor& buckets, const at::Tensor& y) {
  const auto projected = layer_.project(x);
  hash(projected.q, buckets);
  const auto [q, k, v] = layer_.turned(projected, position);
  const auto attended =
      attend_next({q, k, v, buckets, position}, earlier_positions(layer_),
                  cache_, history_);
  layer_.add_joined(attended, y);
}

}  // namespace reformer
