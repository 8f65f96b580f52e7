#include "reformer/ops/interval_attention.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <atomic>
#include <optional>

#include "reformer/core/errors.h"
#include "reformer/core/parallel.h"
#include "reformer/kernels/interval_attention.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kOp = "interval_attention";

int64_t stride_of(const at::Tensor& x, int64_t dim) {
  return x.size(dim) == 1 ? 0 : x.stride(dim);
}

template <class T>
kernels::IntervalAttentionArgs<T> arguments(const at::Tensor& q,
                                            const at::Tensor& k,
                                            const at::Tensor& v,
                                            const IntervalRounds& rounds,
                                            const at::Tensor& mask,
                                            const AttentionResult& result) {
  kernels::IntervalAttentionArgs<T> args{};
  args.q = rows_of<T>(q);
  args.k = rows_of<T>(k);
  args.v = rows_of<T>(v);
  args.mask = mask_data(mask);
  args.rounds = view_of(rounds);
  args.output = mutable_rows_of<T>(result.output);
  args.lse = result.lse.mutable_data_ptr<T>();
  args.softmax = result.softmax.mutable_data_ptr<T>();
  args.batch = q.size(0);
  args.heads = q.size(1);
  args.length = q.size(2);
  args.d_head = q.size(3);
  return args;
}

void check_rounds_shape(const at::Tensor& q, const IntervalRounds& rounds) {
  for (const auto* x : {&rounds.order, &rounds.place, &rounds.interval}) {
    require(x->defined(), kOp,
            ": order, place and interval must be tensors, got none");
    require(x->scalar_type() == at::kInt && x->device().is_cpu(), kOp,
            ": order, place and interval must be int32 on the CPU, got ",
            at::toString(x->scalar_type()), " on ", x->device().str());
  }
  require(rounds.order.dim() == 4, kOp,
          ": order must be [batch, heads, rounds, length], got sizes ",
          rounds.order.sizes());
  const int64_t batch = rounds.order.size(0);
  const int64_t heads = rounds.order.size(1);
  const int64_t n = rounds.order.size(2);
  const int64_t length = q.size(2);
  require(n >= 1, kOp, ": rounds must be at least 1, got ", n);
  require((batch == 1 || batch == q.size(0)) &&
              (heads == 1 || heads == q.size(1)) &&
              rounds.order.size(3) == length,
          kOp, ": order must be [", q.size(0), " or 1, ", q.size(1),
          " or 1, rounds, ", length, "], got sizes ", rounds.order.sizes());
  require(rounds.place.sizes() == at::IntArrayRef({batch, heads, length, n}),
          kOp, ": place must be [", batch, ", ", heads, ", ", length, ", ", n,
          "], got sizes ", rounds.place.sizes());
  require(
      rounds.interval.sizes() == at::IntArrayRef({batch, heads, length, n, 2}),
      kOp, ": interval must be [", batch, ", ", heads, ", ", length, ", ", n,
      ", 2], got sizes ", rounds.interval.sizes());
}

// The kernels trust what this has seen: that every index is within bounds.
void check_rounds_values(const IntervalRounds& rounds) {
  const int64_t n = rounds.order.size(2);
  const int64_t length = rounds.order.size(3);
  const int32_t* order = rounds.order.const_data_ptr<int32_t>();
  const int32_t* place = rounds.place.const_data_ptr<int32_t>();
  const int32_t* interval = rounds.interval.const_data_ptr<int32_t>();
  std::atomic<bool> inverse{true};
  std::atomic<bool> within{true};
  const int64_t heads = rounds.order.size(0) * rounds.order.size(1);
  parallel_tasks(heads, [&](int64_t head) {
    const int32_t* places = place + head * length * n;
    const int32_t* bounds = interval + head * length * n * 2;
    for (int64_t at = 0; at < length * n; ++at) {
      const int64_t s = places[at];
      if (s < 0 || s >= length ||
          order[(head * n + at % n) * length + s] != at / n) {
        inverse = false;
      }
      const int64_t begin = bounds[2 * at];
      const int64_t end = bounds[2 * at + 1];
      if (begin < 0 || end > length || begin > end) within = false;
    }
  });
  require(inverse, kOp,
          ": order must be a permutation of the positions in each round, and "
          "place its inverse");
  require(within, kOp, ": intervals must lie within [0, ", length,
          "] and not end before they begin");
}

IntervalRounds contiguous(const IntervalRounds& rounds) {
  return {rounds.order.contiguous(), rounds.place.contiguous(),
          rounds.interval.contiguous()};
}

class IntervalAttention
    : public torch::autograd::Function<IntervalAttention> {
 public:
  static torch::autograd::variable_list forward(
      torch::autograd::AutogradContext* context, const at::Tensor& q,
      const std::optional<at::Tensor>& maybe_k, const at::Tensor& v,
      const IntervalRounds& rounds,
      const std::optional<at::Tensor>& maybe_mask) {
    const auto& k = *maybe_k;
    const auto& mask = *maybe_mask;
    const auto result = interval_attention_forward(q, k, v, rounds, mask);
    context->save_for_backward({q, k, v, rounds.order, rounds.place,
                                rounds.interval, mask, result.output,
                                result.lse, result.softmax});
    context->mark_non_differentiable({result.lse});
    return {result.output, result.lse};
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list d_outputs) {
    require(!at::GradMode::is_enabled(), kOp,
            ": second derivatives are not available");
    const auto saved = context->get_saved_variables();
    const auto gradients = interval_attention_backward(
        saved[0], saved[1], saved[2], {saved[3], saved[4], saved[5]}, saved[6],
        {saved[7], saved[8], saved[9]}, d_outputs[0]);
    return {gradients.q, gradients.k, gradients.v, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

kernels::RoundsView view_of(const IntervalRounds& rounds) {
  return {rounds.order.const_data_ptr<int32_t>(),
          rounds.place.const_data_ptr<int32_t>(),
          rounds.interval.const_data_ptr<int32_t>(),
          stride_of(rounds.order, 0),
          stride_of(rounds.order, 1),
          stride_of(rounds.place, 0),
          stride_of(rounds.place, 1),
          stride_of(rounds.interval, 0),
          stride_of(rounds.interval, 1),
          rounds.order.size(2)};
}

AttentionResult interval_attention(const at::Tensor& q, const at::Tensor& k,
                                   const at::Tensor& v,
                                   const IntervalRounds& rounds,
                                   const at::Tensor& mask) {
  check_vectors(kOp, "q", q);
  if (k.defined()) check_like(kOp, "k", k, "q", q);
  check_like(kOp, "v", v, "q", q);
  check_mask(kOp, mask, q.size(0), q.size(2));
  check_rounds_shape(q, rounds);
  const auto dense = contiguous(rounds);
  check_rounds_values(dense);
  // Optional, because autograd takes no undefined tensors as arguments.
  const auto result = IntervalAttention::apply(
      q, std::optional(k), v, dense, std::optional(mask));
  return {result[0], result[1], {}};
}

AttentionResult interval_attention_forward(const at::Tensor& q,
                                           const at::Tensor& k,
                                           const at::Tensor& v,
                                           const IntervalRounds& rounds,
                                           const at::Tensor& mask) {
  const auto q_rows = with_contiguous_rows(q);
  const auto k_rows = with_contiguous_rows(k);
  const auto v_rows = with_contiguous_rows(v);
  const auto real = mask.defined() ? mask.contiguous() : mask;
  const AttentionResult result{
      at::empty_like(q_rows),  // [batch, heads, length, d_head]
      at::empty({q.size(0), q.size(1), q.size(2)}, q.options()),
      at::empty({q.size(0), q.size(1), q.size(2), 2}, q.options())};
  const auto run = [&]<class T>() {
    kernels::cpu::interval_attention(
        arguments<T>(q_rows, k_rows, v_rows, rounds, real, result));
  };
  q.scalar_type() == at::kDouble ? run.template operator()<double>()
                                 : run.template operator()<float>();
  return result;
}

AttentionGradients interval_attention_backward(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const IntervalRounds& rounds, const at::Tensor& mask,
    const AttentionResult& result, const at::Tensor& d_output) {
  const auto q_rows = with_contiguous_rows(q);
  const auto k_rows = with_contiguous_rows(k);
  const auto v_rows = with_contiguous_rows(v);
  const auto d_output_rows = with_contiguous_rows(d_output);
  const auto real = mask.defined() ? mask.contiguous() : mask;
  const AttentionGradients gradients{
      at::empty_like(q_rows), k.defined() ? at::empty_like(k_rows) : k,
      at::empty_like(v_rows)};
  const auto run = [&]<class T>() {
    kernels::cpu::interval_attention_grad(
        {arguments<T>(q_rows, k_rows, v_rows, rounds, real, result),
         rows_of<T>(d_output_rows), mutable_rows_of<T>(gradients.q),
         mutable_rows_of<T>(gradients.k), mutable_rows_of<T>(gradients.v)});
  };
  q.scalar_type() == at::kDouble ? run.template operator()<double>()
                                 : run.template operator()<float>();
  return gradients;
}

}  // namespace reformer
