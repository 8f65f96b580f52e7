#include "reformer/generate/beam_cache.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/where.h>

#include <cmath>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/generate/decoded_attention.h"
#include "reformer/kernels/interval_attention.h"
#include "reformer/ops/checks.h"
#include "reformer/ops/lsh_buckets.h"
#include "reformer/ops/lsh_rotations.h"

namespace reformer {
namespace {

constexpr const char* kOp = "beam_cache";

// k / |k|, 0 where it has no direction (kernels::cpu::append_keys).
at::Tensor unit_keys(const at::Tensor& k) {
  const auto norm =
      at::linalg_vector_norm(k, 2, {-1}, /*keepdim=*/true, at::kDouble);
  return at::where(norm <= kernels::kSmallestKeyNorm, 0.0, k / norm)
      .to(k.scalar_type());
}

template <class T>
void run(const kernels::BeamAttentionArgs<T>& args, const at::Tensor& q) {
  if constexpr (!std::is_same_v<T, kernels::Bf16>) {
    if (q.is_cpu()) return kernels::cpu::beam_attention(args);
  }
  if constexpr (!std::is_same_v<T, double>) {
    const LaunchGuard launch(q);
    const auto workspace =
        workspace_of(kernels::cuda::beam_attention_workspace(args), q);
    kernels::cuda::beam_attention(args, workspace.mutable_data_ptr(),
                                  launch.stream());
  }
}

// Calls body.operator()<T>() for the type of `x` as kernels know it.
template <class Body>
auto with_type_of(const at::Tensor& x, const Body& body) {
  switch (x.scalar_type()) {
    case at::kDouble:
      return body.template operator()<double>();
    case at::kBFloat16:
      return body.template operator()<kernels::Bf16>();
    default:
      return body.template operator()<float>();
  }
}

}  // namespace

void BeamAncestors::advance(const at::Tensor& parents) {
  const auto newest =
      at::arange(parents.size(0), at::TensorOptions(device_).dtype(at::kInt));
  slots_ =
      slots_.defined()
          ? at::cat({at::index_select(slots_, 1, parents), newest.unsqueeze(0)})
          : newest.unsqueeze(0);
}

BeamCache::BeamCache(const AttentionLayer& layer, int64_t most_rows,
                     const Pass& pass, const Placement& placement)
    : layer_(layer),
      most_rows_(most_rows),
      lsh_(decoding_lsh(layer, pass)),
      placement_(placement) {
  if (!is_lsh()) return;
  rotations_ =
      lsh_rotations(layer.hash_key(pass), layer.hashed_heads(), lsh_.rounds,
                    layer.d_head(), lsh_.n_buckets, placement.device);
}

at::Tensor BeamCache::Blocks::at(int64_t position, int64_t rows,
                                 at::IntArrayRef sizes,
                                 const at::TensorOptions& options) {
  constexpr int64_t kBlock = kernels::kBeamBlockPositions;
  while (static_cast<int64_t>(blocks.size()) * kBlock <= position) {
    blocks.push_back(at::empty(sizes, options));
    std::vector<int64_t> pointers;
    for (const auto& block : blocks) {
      pointers.push_back(reinterpret_cast<intptr_t>(block.mutable_data_ptr()));
    }
    table = copied_to(pointers, options.device());
  }
  return blocks[static_cast<std::size_t>(position / kBlock)]
      .select(0, position % kBlock)
      .narrow(0, 0, rows);
}

void BeamCache::write(const Projected& turned, const at::Tensor& buckets,
                      int64_t position) {
  constexpr int64_t kBlock = kernels::kBeamBlockPositions;
  const auto& [q, k, v] = turned;
  const int64_t rows = q.size(0);
  require(rows <= most_rows_, kOp, ": at most ", most_rows_,
          " rows were announced, got ", rows);
  const auto to = numbers_.at(  // [rows, 2, heads, d_head]
      position, rows, {kBlock, most_rows_, 2, layer_.heads(), layer_.d_head()},
      v.options());
  to.select(1, 0).copy_((k.defined() ? k : unit_keys(q)).squeeze(2));
  to.select(1, 1).copy_(v.squeeze(2));
  if (!is_lsh()) return;
  buckets_
      .at(position, rows,
          {kBlock, most_rows_, layer_.hashed_heads(), lsh_.rounds},
          buckets.options())
      .copy_(buckets.squeeze(3));
}

// [rows, heads, positions before] uint8
at::Tensor BeamCache::seen(const at::Tensor& buckets,
                           const BeamAncestors& ancestors) {
  const int64_t position = ancestors.positions() - 1;
  const int64_t rows = ancestors.rows();
  const int64_t heads = layer_.heads();
  const int64_t hashed = layer_.hashed_heads();
  const auto own = buckets.contiguous();
  const auto result =
      at::empty({rows, heads, position}, own.options().dtype(at::kByte));
  if (position == 0) return result;
  kernels::BeamSeenArgs args{};
  args.buckets = {
      static_cast<const uint16_t* const*>(buckets_.table.const_data_ptr()),
      nullptr, most_rows_ * hashed * lsh_.rounds, hashed * lsh_.rounds,
      lsh_.rounds};
  args.slots = {ancestors.slots().const_data_ptr<int32_t>(), rows};
  args.own = own.const_data_ptr<uint16_t>();
  args.position = position;
  args.rounds = lsh_.rounds;
  args.window = lsh_.chunk_length;
  args.local_window = lsh_.local_window;
  args.near_window = layer_.near_window();
  args.seen = result.mutable_data_ptr<uint8_t>();
  args.rows = rows;
  args.heads = heads;
  args.hashed_heads = hashed;
  if (own.is_cpu()) {
    kernels::cpu::beam_seen(args);
  } else {
    const LaunchGuard launch(own);
    kernels::cuda::beam_seen(args, launch.stream());
  }
  return result;
}

template <class T>
at::Tensor BeamCache::attend(const at::Tensor& q, const at::Tensor& seen,
                             const BeamAncestors& ancestors) {
  const int64_t position = ancestors.positions() - 1;
  const int64_t heads = layer_.heads();
  const int64_t width = heads * layer_.d_head();
  const auto earlier = earlier_positions(layer_, /*hashed=*/true);
  const auto queries = with_contiguous_rows(q);
  const auto output = at::empty(q.sizes(), q.options());
  kernels::BeamAttentionArgs<T> args{};
  args.q = rows_of<T>(queries);
  args.keys = {static_cast<const T* const*>(numbers_.table.const_data_ptr()),
               nullptr, most_rows_ * 2 * width, 2 * width, layer_.d_head()};
  args.values = args.keys;
  args.value_offset = width;
  args.slots = {ancestors.slots().const_data_ptr<int32_t>(), ancestors.rows()};
  args.begin = seen.defined() ? 0 : earlier.begin(position);
  args.end = position + (earlier.itself ? 1 : 0);
  if (seen.defined()) args.seen = seen.const_data_ptr<uint8_t>();
  args.own = position;
  args.successor_heads = layer_.successor_heads();
  args.scale = layer_.kind() == AttentionKind::kFull
                   ? 1 / std::sqrt(double(layer_.d_head()))
                   : 1;
  args.output = mutable_rows_of<T>(output);
  args.rows = q.size(0);
  args.heads = heads;
  args.d_head = layer_.d_head();
  run(args, queries);
  return output;
}

void BeamCache::step(const at::Tensor& x, const at::Tensor& position,
                     const BeamAncestors& ancestors, at::Tensor& buckets,
                     const at::Tensor& y) {
  require(x.size(0) == ancestors.rows(), kOp, ": ", ancestors.rows(),
          " rows are required, got ", x.size(0));
  const auto projected = layer_.project(x);
  if (is_lsh() && !buckets.defined()) {
    buckets = lsh_buckets(projected.q.narrow(1, 0, layer_.hashed_heads()),
                          rotations_, lsh_.n_buckets);
  }
  const auto turned = layer_.turned(projected, position);
  write(turned, buckets, ancestors.positions() - 1);
  const auto which = is_lsh() ? seen(buckets, ancestors) : at::Tensor();
  const auto attended = with_type_of(turned.q, [&]<class T>() {
    return attend<T>(turned.q, which, ancestors);
  });
  layer_.add_joined(attended, y);
}

at::Tensor attend_source(const at::Tensor& q, const Projected& source,
                         const BeamSources& of_rows) {
  const auto queries = with_contiguous_rows(q);
  const auto k = with_contiguous_rows(source.k);
  const auto v = with_contiguous_rows(source.v);
  const auto output = at::empty(q.sizes(), q.options());
  with_type_of(q, [&]<class T>() {
    const auto blocks_of = [](const at::Tensor& x) {
      return kernels::BeamBlocks<const T>{
          nullptr, static_cast<const T*>(x.const_data_ptr()), x.stride(2),
          x.stride(0), x.stride(1)};
    };
    kernels::BeamAttentionArgs<T> args{};
    args.q = rows_of<T>(queries);
    args.keys = blocks_of(k);
    args.values = blocks_of(v);
    args.slots = {of_rows.sentences.const_data_ptr<int32_t>(), 0};
    args.end = of_rows.longest;
    args.ends = of_rows.lengths.const_data_ptr<int32_t>();
    args.own = -1;
    args.scale = 1 / std::sqrt(double(q.size(3)));
    args.output = mutable_rows_of<T>(output);
    args.rows = q.size(0);
    args.heads = q.size(1);
    args.d_head = q.size(3);
    run(args, queries);
  });
  return output;
}

}  // namespace reformer
