#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include "python/csrc/operators.h"
#include "reformer/base/errors.h"
#include "reformer/ops/checks.h"
#include "reformer/ops/interval_attention.h"
#include "reformer/ops/lsh_attention.h"
#include "reformer/ops/natural_rounds.h"

namespace reformer::python {
namespace {

// The library's sentences as Python's ValueError.
template <class Body>
auto translated(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    C10_THROW_ERROR(ValueError, error.what());
  }
}

Tensor or_undefined(const MaybeTensor& x) { return x.value_or(Tensor()); }

Window window_of(const char* op, const std::string& name) {
  require(name == "chunk" || name == "trailing", op,
          ": window must be 'chunk' or 'trailing', got '", name, "'");
  return name == "chunk" ? Window::kChunk : Window::kTrailing;
}

// On CUDA the kernels want vectors at multiples of 16 bytes. Copied here with
// the strides kept, so that those of results depend on strides alone, which is
// what fake kernels know.
Tensor aligned(const Tensor& x) {
  constexpr uintptr_t kAlignment = 16;
  const bool fits =
      !x.defined() || !x.is_cuda() ||
      reinterpret_cast<uintptr_t>(x.const_data_ptr()) % kAlignment == 0;
  return fits ? x : x.clone(at::MemoryFormat::Preserve);
}

// The library takes no tensors without vectors. Its checks see one vector in
// their place, of the same type and width.
bool has_no_vectors(const Tensor& x) {
  return x.dim() == 4 && x.size(0) * x.size(1) * x.size(2) == 0;
}

Tensor one_vector(const Tensor& x) {
  return at::zeros({1, 1, 1, x.size(3)}, x.options());
}

Rounds empty_rounds(const Tensor& like, int64_t batch, int64_t heads,
                    int64_t rounds, int64_t length) {
  const auto options = like.options().dtype(at::kInt);
  return {at::empty({batch, heads, rounds, length}, options),
          at::empty({batch, heads, length, rounds}, options),
          at::empty({batch, heads, length, rounds, 2}, options)};
}

at::ScalarType statistics_type(const Tensor& q) {
  return q.scalar_type() == at::kBFloat16 ? at::kFloat : q.scalar_type();
}

void implement_kernels(torch::Library& m) {
  m.impl("lsh_buckets", lsh_buckets);
  m.impl("lsh_rounds", lsh_rounds);
  m.impl("local_rounds", local_rounds);
  m.impl("interval_attention_forward", interval_attention_forward);
  m.impl("interval_attention_backward", interval_attention_backward);
}

}  // namespace

Tensor lsh_buckets(const Tensor& qk, int64_t rounds, int64_t chunk_length,
                   int64_t n_buckets, c10::SymInt seed) {
  return translated([&] {
    const LshConfig config{
        .rounds = rounds, .chunk_length = chunk_length, .n_buckets = n_buckets};
    const HashKey key{
        .seed = static_cast<uint64_t>(seed.guard_int(__FILE__, __LINE__))};
    if (has_no_vectors(qk)) {
      const auto one = lsh_attention_buckets(one_vector(qk), config, key);
      return at::empty({qk.size(0), qk.size(1), rounds, qk.size(2)},
                       one.options());
    }
    return lsh_attention_buckets(qk, config, key);
  });
}

Rounds lsh_rounds(const Tensor& buckets, const MaybeTensor& mask,
                  int64_t chunk_length, int64_t n_buckets, int64_t local_window,
                  std::string window, bool causal) {
  return translated([&]() -> Rounds {
    const LshConfig config{.chunk_length = chunk_length,
                           .n_buckets = n_buckets,
                           .local_window = local_window,
                           .window = window_of("lsh_attention", window),
                           .causal = causal};
    if (buckets.dim() == 4 && buckets.numel() == 0) {
      return empty_rounds(buckets, buckets.size(0), buckets.size(1),
                          buckets.size(2) + (local_window > 0 ? 1 : 0),
                          buckets.size(3));
    }
    const auto made = reformer::lsh_rounds(buckets, config, or_undefined(mask));
    return {made.order, made.place, made.interval};
  });
}

Rounds local_rounds(const Tensor& qk, const MaybeTensor& mask,
                    int64_t chunk_length, std::string window, bool causal) {
  constexpr const char* kOp = "local_attention";
  return translated([&]() -> Rounds {
    const auto rule = window_of(kOp, window);
    require(chunk_length >= 1, kOp, ": chunk_length must be at least 1, got ",
            chunk_length);
    require(qk.dim() == 4, kOp,
            ": qk must be [batch, heads, length, d_head], got sizes ",
            qk.sizes());
    check_mask(kOp, or_undefined(mask), qk.device(), qk.size(0), qk.size(2));
    if (has_no_vectors(qk)) {
      return empty_rounds(qk, mask ? qk.size(0) : 1, 1, 1, qk.size(2));
    }
    const auto made = natural_rounds(qk.size(2), {rule, chunk_length}, causal,
                                     or_undefined(mask), qk.device());
    return {made.order, made.place, made.interval};
  });
}

Results interval_attention_forward(const Tensor& q, const MaybeTensor& k,
                                   const Tensor& v, const Tensor& order,
                                   const Tensor& place, const Tensor& interval,
                                   const MaybeTensor& mask,
                                   int64_t successor_heads, bool trusted) {
  return translated([&]() -> Results {
    const IntervalRounds rounds{order, place, interval};
    const auto keys = aligned(or_undefined(k));
    if (has_no_vectors(q)) {
      check_vectors("interval_attention", "q", one_vector(q));
      check_like("interval_attention", "v", v, "q", q);
      const auto statistics = q.options().dtype(statistics_type(q));
      return {at::empty_like(q),
              at::empty({q.size(0), q.size(1), q.size(2)}, statistics),
              at::empty({q.size(0), q.size(1), q.size(2), 2}, statistics)};
    }
    check_interval_attention(
        q, keys, v, rounds, or_undefined(mask), successor_heads,
        trusted ? RoundsOrigin::kOurs : RoundsOrigin::kGiven);
    const auto result = reformer::interval_attention_forward(
        aligned(q), keys, aligned(v),
        {order.contiguous(), place.contiguous(), interval.contiguous()},
        or_undefined(mask), successor_heads);
    return {result.output, result.lse, result.softmax};
  });
}

std::tuple<Tensor, Tensor, Tensor> interval_attention_backward(
    const Tensor& d_output, const Tensor& q, const MaybeTensor& k,
    const Tensor& v, const Tensor& order, const Tensor& place,
    const Tensor& interval, const MaybeTensor& mask, const Tensor& output,
    const Tensor& lse, const Tensor& softmax, int64_t successor_heads) {
  return translated([&]() -> std::tuple<Tensor, Tensor, Tensor> {
    if (q.numel() == 0) {
      return {at::zeros_like(q),
              k ? at::zeros_like(*k) : at::empty({0}, q.options()),
              at::zeros_like(v)};
    }
    const auto gradients = reformer::interval_attention_backward(
        aligned(q), aligned(or_undefined(k)), aligned(v),
        {order.contiguous(), place.contiguous(), interval.contiguous()},
        or_undefined(mask), {output, lse, softmax}, aligned(d_output),
        successor_heads);
    return {gradients.q, k ? gradients.k : at::empty({0}, q.options()),
            gradients.v};
  });
}

TORCH_LIBRARY_IMPL(reformer, CPU, m) { implement_kernels(m); }
TORCH_LIBRARY_IMPL(reformer, CUDA, m) { implement_kernels(m); }

}  // namespace reformer::python
