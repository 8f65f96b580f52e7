// The library's attention as operators of PyTorch: torch.ops.reformer.*.
//
// The one differentiable operator is interval_attention_forward; everything
// else chooses rounds for it, as in C++. What users call (lsh_attention,
// local_attention, interval_attention) is composed of these, so that
// torch.compile and torch.export see through it down to operators that have
// fake kernels (python/reformer/_fake.py).
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <optional>
#include <string>
#include <tuple>

#include "reformer/base/errors.h"
#include "reformer/ops/checks.h"
#include "reformer/ops/interval_attention.h"
#include "reformer/ops/lsh_attention.h"
#include "reformer/ops/natural_rounds.h"

namespace reformer::python {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using Rounds = std::tuple<Tensor, Tensor, Tensor>;   // IntervalRounds
using Results = std::tuple<Tensor, Tensor, Tensor>;  // AttentionResult

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

// --- Kernels: tensors with elements, no autograd -----------------------------

Tensor lsh_buckets(const Tensor& qk, int64_t rounds, int64_t chunk_length,
                   int64_t n_buckets, c10::SymInt seed) {
  return translated([&] {
    if (qk.dim() == 4 && qk.numel() == 0) {
      return at::empty({qk.size(0), qk.size(1), rounds, qk.size(2)},
                       qk.options().dtype(at::kUInt16));
    }
    const LshConfig config{
        .rounds = rounds, .chunk_length = chunk_length, .n_buckets = n_buckets};
    return lsh_attention_buckets(
        qk, config,
        {.seed = static_cast<uint64_t>(seed.guard_int(__FILE__, __LINE__))});
  });
}

Rounds empty_rounds(const Tensor& like, int64_t batch, int64_t heads,
                    int64_t rounds, int64_t length) {
  const auto options = like.options().dtype(at::kInt);
  return {at::empty({batch, heads, rounds, length}, options),
          at::empty({batch, heads, length, rounds}, options),
          at::empty({batch, heads, length, rounds, 2}, options)};
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
    if (qk.numel() == 0) {
      return empty_rounds(qk, mask ? qk.size(0) : 1, 1, 1, qk.size(2));
    }
    const auto made = natural_rounds(qk.size(2), {rule, chunk_length}, causal,
                                     or_undefined(mask), qk.device());
    return {made.order, made.place, made.interval};
  });
}

at::ScalarType statistics_type(const Tensor& q) {
  return q.scalar_type() == at::kBFloat16 ? at::kFloat : q.scalar_type();
}

Results interval_attention_forward(const Tensor& q, const MaybeTensor& k,
                                   const Tensor& v, const Tensor& order,
                                   const Tensor& place, const Tensor& interval,
                                   const MaybeTensor& mask,
                                   int64_t successor_heads, bool trusted) {
  return translated([&]() -> Results {
    const IntervalRounds rounds{order, place, interval};
    const auto keys = aligned(or_undefined(k));
    if (q.dim() == 4 && q.numel() == 0) {
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

// The gradient of k is empty where k is shared with q.
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

// --- Through the dispatcher: traced where somebody traces --------------------

template <class Signature>
auto operator_named(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<Signature>();
}

Tensor call_buckets(const Tensor& qk, int64_t rounds, int64_t chunk_length,
                    int64_t n_buckets, c10::SymInt seed) {
  static const auto op =
      operator_named<decltype(lsh_buckets)>("reformer::lsh_buckets");
  return op.call(qk, rounds, chunk_length, n_buckets, seed);
}

Results call_forward(const Tensor& q, const MaybeTensor& k, const Tensor& v,
                     const Rounds& rounds, const MaybeTensor& mask,
                     int64_t successor_heads, bool trusted) {
  static const auto op = operator_named<decltype(interval_attention_forward)>(
      "reformer::interval_attention_forward");
  const auto& [order, place, interval] = rounds;
  return op.call(q, k, v, order, place, interval, mask, successor_heads,
                 trusted);
}

class IntervalAttention : public torch::autograd::Function<IntervalAttention> {
 public:
  static torch::autograd::variable_list forward(
      torch::autograd::AutogradContext* context, const Tensor& q,
      const MaybeTensor& k, const Tensor& v, const Tensor& order,
      const Tensor& place, const Tensor& interval, const MaybeTensor& mask,
      int64_t successor_heads, bool trusted) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto [output, lse, softmax] = call_forward(
        q, k, v, {order, place, interval}, mask, successor_heads, trusted);
    context->saved_data["successor_heads"] = successor_heads;
    context->save_for_backward({q, or_undefined(k), v, order, place, interval,
                                or_undefined(mask), output, lse, softmax});
    context->mark_non_differentiable({lse, softmax});
    return {output, lse, softmax};
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list d_outputs) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        !at::GradMode::is_enabled(),
        "reformer: second derivatives are not available");
    static const auto op =
        operator_named<decltype(interval_attention_backward)>(
            "reformer::interval_attention_backward");
    const auto saved = context->get_saved_variables();
    const auto maybe = [](const Tensor& x) {
      return x.defined() ? MaybeTensor(x) : std::nullopt;
    };
    const auto [d_q, d_k, d_v] =
        op.call(d_outputs[0], saved[0], maybe(saved[1]), saved[2], saved[3],
                saved[4], saved[5], maybe(saved[6]), saved[7], saved[8],
                saved[9], context->saved_data["successor_heads"].toInt());
    return {d_q, saved[1].defined() ? d_k : Tensor(), d_v, {}, {}, {}, {}, {},
            {}};
  }
};

Results interval_attention_autograd(const Tensor& q, const MaybeTensor& k,
                                    const Tensor& v, const Tensor& order,
                                    const Tensor& place, const Tensor& interval,
                                    const MaybeTensor& mask,
                                    int64_t successor_heads, bool trusted) {
  const auto results = IntervalAttention::apply(q, k, v, order, place, interval,
                                                mask, successor_heads, trusted);
  return {results[0], results[1], results[2]};
}

// --- What users call ---------------------------------------------------------

// Types that no kernel has are computed in float32, as users of PyTorch expect
// of half precision; what is wrong otherwise is for the checks to say.
bool widens(const Tensor& x) {
  const auto type = x.scalar_type();
  return type == at::kHalf || (type == at::kBFloat16 && !x.is_cuda());
}

Tensor widened(const Tensor& x) { return widens(x) ? x.to(at::kFloat) : x; }

Tensor narrowed(const Tensor& output, const Tensor& like) {
  return widens(like) ? output.to(like.scalar_type()) : output;
}

Tensor attend(const Tensor& qk, const Tensor& v, const Rounds& rounds,
              const MaybeTensor& mask, int64_t successor_heads) {
  return std::get<0>(call_forward(qk, std::nullopt, v, rounds, mask,
                                  successor_heads, /*trusted=*/true));
}

Tensor lsh_attention(const Tensor& qk, const Tensor& v, int64_t rounds,
                     int64_t chunk_length, int64_t n_buckets,
                     int64_t local_window, std::string window, bool causal,
                     int64_t successor_heads, c10::SymInt seed,
                     const MaybeTensor& mask, const MaybeTensor& buckets) {
  static const auto rounds_of =
      operator_named<decltype(lsh_rounds)>("reformer::lsh_rounds");
  const auto wide_qk = widened(qk);
  const auto used = buckets ? *buckets
                            : call_buckets(wide_qk.detach(), rounds,
                                           chunk_length, n_buckets, seed);
  return narrowed(attend(wide_qk, widened(v),
                         rounds_of.call(used, mask, chunk_length, n_buckets,
                                        local_window, window, causal),
                         mask, successor_heads),
                  qk);
}

Tensor local_attention(const Tensor& qk, const Tensor& v, int64_t chunk_length,
                       std::string window, bool causal, int64_t successor_heads,
                       const MaybeTensor& mask) {
  static const auto rounds_of =
      operator_named<decltype(local_rounds)>("reformer::local_rounds");
  const auto wide_qk = widened(qk);
  return narrowed(attend(wide_qk, widened(v),
                         rounds_of.call(wide_qk.detach(), mask, chunk_length,
                                        window, causal),
                         mask, successor_heads),
                  qk);
}

std::tuple<Tensor, Tensor> interval_attention(
    const Tensor& q, const MaybeTensor& k, const Tensor& v, const Tensor& order,
    const Tensor& place, const Tensor& interval, const MaybeTensor& mask,
    int64_t successor_heads) {
  const auto [output, lse, softmax] = call_forward(
      widened(q), k ? MaybeTensor(widened(*k)) : k, widened(v),
      {order, place, interval}, mask, successor_heads, /*trusted=*/false);
  return {narrowed(output, q), lse};
}

// --- Autocast: to bfloat16 on CUDA, which has such kernels; a CPU has none ---

at::ScalarType autocast_type(at::DeviceType device) {
  const bool brain = device == at::kCUDA &&
                     at::autocast::get_autocast_dtype(device) == at::kBFloat16;
  return brain ? at::kBFloat16 : at::kFloat;
}

template <at::DeviceType kDevice>
Tensor cast(const Tensor& x) {
  return at::autocast::cached_cast(autocast_type(kDevice), x, kDevice);
}

c10::DispatchKeySet autocast_key(at::DeviceType device) {
  return c10::DispatchKeySet(
      at::autocast::get_autocast_dispatch_key_from_device_type(device));
}

template <at::DeviceType kDevice>
Tensor lsh_attention_autocast(const Tensor& qk, const Tensor& v, int64_t rounds,
                              int64_t chunk_length, int64_t n_buckets,
                              int64_t local_window, std::string window,
                              bool causal, int64_t successor_heads,
                              c10::SymInt seed, const MaybeTensor& mask,
                              const MaybeTensor& buckets) {
  const c10::impl::ExcludeDispatchKeyGuard without(autocast_key(kDevice));
  return lsh_attention(cast<kDevice>(qk), cast<kDevice>(v), rounds,
                       chunk_length, n_buckets, local_window, window, causal,
                       successor_heads, seed, mask, buckets);
}

template <at::DeviceType kDevice>
Tensor local_attention_autocast(const Tensor& qk, const Tensor& v,
                                int64_t chunk_length, std::string window,
                                bool causal, int64_t successor_heads,
                                const MaybeTensor& mask) {
  const c10::impl::ExcludeDispatchKeyGuard without(autocast_key(kDevice));
  return local_attention(cast<kDevice>(qk), cast<kDevice>(v), chunk_length,
                         window, causal, successor_heads, mask);
}

template <at::DeviceType kDevice>
std::tuple<Tensor, Tensor> interval_attention_autocast(
    const Tensor& q, const MaybeTensor& k, const Tensor& v, const Tensor& order,
    const Tensor& place, const Tensor& interval, const MaybeTensor& mask,
    int64_t successor_heads) {
  const c10::impl::ExcludeDispatchKeyGuard without(autocast_key(kDevice));
  return interval_attention(
      cast<kDevice>(q), k ? MaybeTensor(cast<kDevice>(*k)) : k,
      cast<kDevice>(v), order, place, interval, mask, successor_heads);
}

template <at::DeviceType kDevice>
void implement_autocast(torch::Library& m) {
  m.impl("lsh_attention", lsh_attention_autocast<kDevice>);
  m.impl("local_attention", local_attention_autocast<kDevice>);
  m.impl("interval_attention", interval_attention_autocast<kDevice>);
}

void implement_kernels(torch::Library& m) {
  m.impl("lsh_buckets", lsh_buckets);
  m.impl("lsh_rounds", lsh_rounds);
  m.impl("local_rounds", local_rounds);
  m.impl("interval_attention_forward", interval_attention_forward);
  m.impl("interval_attention_backward", interval_attention_backward);
}

}  // namespace

TORCH_LIBRARY(reformer, m) {
  m.def(
      "lsh_buckets(Tensor qk, int rounds=4, int chunk_length=128, "
      "int n_buckets=0, SymInt seed=0) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "lsh_rounds(Tensor buckets, Tensor? mask, int chunk_length, "
      "int n_buckets, int local_window, str window, bool causal) "
      "-> (Tensor order, Tensor place, Tensor interval)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "local_rounds(Tensor qk, Tensor? mask, int chunk_length, str window, "
      "bool causal) -> (Tensor order, Tensor place, Tensor interval)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "interval_attention_forward(Tensor q, Tensor? k, Tensor v, Tensor order, "
      "Tensor place, Tensor interval, Tensor? mask, int successor_heads, "
      "bool trusted) -> (Tensor output, Tensor lse, Tensor softmax)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "interval_attention_backward(Tensor d_output, Tensor q, Tensor? k, "
      "Tensor v, Tensor order, Tensor place, Tensor interval, Tensor? mask, "
      "Tensor output, Tensor lse, Tensor softmax, int successor_heads) "
      "-> (Tensor d_q, Tensor d_k, Tensor d_v)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "lsh_attention(Tensor qk, Tensor v, *, int rounds=4, "
      "int chunk_length=128, int n_buckets=0, int local_window=0, "
      "str window='trailing', bool causal=True, int successor_heads=0, "
      "SymInt seed=0, Tensor? mask=None, Tensor? buckets=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "local_attention(Tensor qk, Tensor v, *, int chunk_length=128, "
      "str window='chunk', bool causal=True, int successor_heads=0, "
      "Tensor? mask=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "interval_attention(Tensor q, Tensor? k, Tensor v, Tensor order, "
      "Tensor place, Tensor interval, *, Tensor? mask=None, "
      "int successor_heads=0) -> (Tensor output, Tensor lse)",
      {at::Tag::pt2_compliant_tag});
  m.impl("lsh_attention", c10::DispatchKey::CompositeImplicitAutograd,
         lsh_attention);
  m.impl("local_attention", c10::DispatchKey::CompositeImplicitAutograd,
         local_attention);
  m.impl("interval_attention", c10::DispatchKey::CompositeImplicitAutograd,
         interval_attention);
}

TORCH_LIBRARY_IMPL(reformer, CPU, m) { implement_kernels(m); }
TORCH_LIBRARY_IMPL(reformer, CUDA, m) { implement_kernels(m); }
TORCH_LIBRARY_IMPL(reformer, Autograd, m) {
  m.impl("interval_attention_forward", interval_attention_autograd);
}
TORCH_LIBRARY_IMPL(reformer, AutocastCPU, m) {
  implement_autocast<at::kCPU>(m);
}
TORCH_LIBRARY_IMPL(reformer, AutocastCUDA, m) {
  implement_autocast<at::kCUDA>(m);
}

}  // namespace reformer::python
