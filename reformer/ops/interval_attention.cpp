#include "reformer/ops/interval_attention.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <atomic>
#include <optional>

#include "reformer/base/errors.h"
#include "reformer/base/parallel.h"
#include "reformer/device/device.h"
#include "reformer/kernels/bf16.h"
#include "reformer/kernels/interval_attention.h"
#include "reformer/ops/checks.h"
#include "reformer/ops/successors.h"

namespace reformer {
namespace {

constexpr const char* kIntervalAttention = "interval_attention";

template <class T>
kernels::IntervalAttentionArgs<T> arguments(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const IntervalRounds& rounds, const at::Tensor& mask,
    const Successors& successors, const AttentionResult& result) {
  kernels::IntervalAttentionArgs<T> args{};
  args.q = rows_of<T>(q);
  args.k = rows_of<T>(k);
  args.v = rows_of<T>(v);
  args.mask = mask_data(mask);
  args.successors = successors.view();
  args.rounds = view_of(rounds);
  args.output = mutable_rows_of<T>(result.output);
  args.lse = result.lse.mutable_data_ptr<kernels::SoftmaxType<T>>();
  args.softmax = result.softmax.mutable_data_ptr<kernels::SoftmaxType<T>>();
  args.batch = q.size(0);
  args.heads = q.size(1);
  args.length = q.size(2);
  args.d_head = q.size(3);
  return args;
}

at::ScalarType statistics_type(const at::Tensor& q) {
  return q.scalar_type() == at::kBFloat16 ? at::kFloat : q.scalar_type();
}

void check_rounds_shape(const at::Tensor& q, const IntervalRounds& rounds) {
  for (const auto* x : {&rounds.order, &rounds.place, &rounds.interval}) {
    require(x->defined(), kIntervalAttention,
            ": order, place and interval must be tensors, got none");
    require(x->scalar_type() == at::kInt && x->device() == q.device(),
            kIntervalAttention,
            ": order, place and interval must be int32 on the device of q, ",
            q.device().str(), ", got ", at::toString(x->scalar_type()), " on ",
            x->device().str());
  }
  require(rounds.order.dim() == 4, kIntervalAttention,
          ": order must be [batch, heads, rounds, length], got sizes ",
          rounds.order.sizes());
  const int64_t batch = rounds.order.size(0);
  const int64_t heads = rounds.order.size(1);
  const int64_t n = rounds.order.size(2);
  const int64_t length = q.size(2);
  require(n >= 1, kIntervalAttention, ": rounds must be at least 1, got ", n);
  require(
      (batch == 1 || batch == q.size(0)) &&
          (heads == 1 || heads == q.size(1)) && rounds.order.size(3) == length,
      kIntervalAttention, ": order must be [", q.size(0), " or 1, ", q.size(1),
      " or 1, rounds, ", length, "], got sizes ", rounds.order.sizes());
  require(rounds.place.sizes() == at::IntArrayRef({batch, heads, length, n}),
          kIntervalAttention, ": place must be [", batch, ", ", heads, ", ",
          length, ", ", n, "], got sizes ", rounds.place.sizes());
  require(
      rounds.interval.sizes() == at::IntArrayRef({batch, heads, length, n, 2}),
      kIntervalAttention, ": interval must be [", batch, ", ", heads, ", ",
      length, ", ", n, ", 2], got sizes ", rounds.interval.sizes());
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
  require(inverse, kIntervalAttention,
          ": order must be a permutation of the positions in each round, and "
          "place its inverse");
  require(within, kIntervalAttention, ": intervals must lie within [0, ",
          length, "] and not end before they begin");
}

// What CUDA's kernels rely on besides: a key's queries are then neighbours.
void check_monotone(const IntervalRounds& rounds) {
  const int64_t n = rounds.order.size(2);
  const int64_t length = rounds.order.size(3);
  const int32_t* order = rounds.order.const_data_ptr<int32_t>();
  const int32_t* interval = rounds.interval.const_data_ptr<int32_t>();
  std::atomic<bool> monotone{true};
  const int64_t rows = rounds.order.size(0) * rounds.order.size(1) * n;
  parallel_tasks(rows, [&](int64_t row) {
    const int32_t* bounds = interval + (row / n * length * n + row % n) * 2;
    const auto at = [&](int64_t s) {
      return bounds + order[row * length + s] * n * 2;
    };
    for (int64_t s = 1; s < length; ++s) {
      if (at(s)[0] < at(s - 1)[0] || at(s)[1] < at(s - 1)[1]) monotone = false;
    }
  });
  require(monotone, kIntervalAttention,
          ": on CUDA intervals must be monotone: neither begin nor end may "
          "decrease from place to place");
}

at::Tensor written_to(const at::Tensor& given, const at::Tensor& rows) {
  return given.defined() ? given : empty_rows_like(rows);
}

IntervalRounds on_cpu(const IntervalRounds& rounds) {
  return {rounds.order.cpu(), rounds.place.cpu(), rounds.interval.cpu()};
}

IntervalRounds contiguous(const IntervalRounds& rounds) {
  return {rounds.order.contiguous(), rounds.place.contiguous(),
          rounds.interval.contiguous()};
}

class IntervalAttention : public torch::autograd::Function<IntervalAttention> {
 public:
  static torch::autograd::variable_list forward(
      torch::autograd::AutogradContext* context, const at::Tensor& q,
      const std::optional<at::Tensor>& maybe_k, const at::Tensor& v,
      const IntervalRounds& rounds, const std::optional<at::Tensor>& maybe_mask,
      int64_t successor_heads) {
    const auto& k = *maybe_k;
    const auto& mask = *maybe_mask;
    const auto result =
        interval_attention_forward(q, k, v, rounds, mask, successor_heads);
    context->saved_data["successor_heads"] = successor_heads;
    context->save_for_backward({q, k, v, rounds.order, rounds.place,
                                rounds.interval, mask, result.output,
                                result.lse, result.softmax});
    context->mark_non_differentiable({result.lse});
    return {result.output, result.lse};
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list d_outputs) {
    require(!at::GradMode::is_enabled(), kIntervalAttention,
            ": second derivatives are not available");
    const auto saved = context->get_saved_variables();
    const auto gradients = interval_attention_backward(
        saved[0], saved[1], saved[2], {saved[3], saved[4], saved[5]}, saved[6],
        {saved[7], saved[8], saved[9]}, d_outputs[0],
        context->saved_data["successor_heads"].toInt());
    return {gradients.q,  gradients.k,  gradients.v,
            at::Tensor(), at::Tensor(), at::Tensor()};
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

void check_interval_attention(const at::Tensor& q, const at::Tensor& k,
                              const at::Tensor& v, const IntervalRounds& rounds,
                              const at::Tensor& mask, int64_t successor_heads,
                              RoundsOrigin origin) {
  check_vectors(kIntervalAttention, "q", q);
  if (k.defined()) check_like(kIntervalAttention, "k", k, "q", q);
  check_like(kIntervalAttention, "v", v, "q", q);
  check_mask(kIntervalAttention, mask, q.device(), q.size(0), q.size(2));
  check_rounds_shape(q, rounds);
  check_successor_heads(kIntervalAttention, successor_heads, q);
  require(successor_heads == 0 || !k.defined(), kIntervalAttention,
          ": successor_heads require shared queries and keys, got a k");
  if (origin == RoundsOrigin::kOurs) return;
  const auto dense = contiguous(rounds);
  const auto seen = q.is_cuda() ? on_cpu(dense) : dense;
  check_rounds_values(seen);
  if (q.is_cuda()) check_monotone(seen);
}

AttentionResult interval_attention(const at::Tensor& q, const at::Tensor& k,
                                   const at::Tensor& v,
                                   const IntervalRounds& rounds,
                                   const at::Tensor& mask,
                                   int64_t successor_heads) {
  check_interval_attention(q, k, v, rounds, mask, successor_heads,
                           RoundsOrigin::kGiven);
  return interval_attention_unchecked(q, k, v, contiguous(rounds), mask,
                                      successor_heads);
}

AttentionResult interval_attention_unchecked(const at::Tensor& q,
                                             const at::Tensor& k,
                                             const at::Tensor& v,
                                             const IntervalRounds& rounds,
                                             const at::Tensor& mask,
                                             int64_t successor_heads) {
  // Optional, because autograd takes no undefined tensors as arguments.
  const auto result =
      IntervalAttention::apply(q, std::optional(k), v, contiguous(rounds),
                               std::optional(mask), successor_heads);
  return {result[0], result[1], {}};
}

AttentionResult interval_attention_forward(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const IntervalRounds& rounds, const at::Tensor& mask,
    int64_t successor_heads, const at::Tensor& output) {
  const auto q_rows = with_contiguous_rows(q);
  const auto k_rows = with_contiguous_rows(k);
  const auto v_rows = with_contiguous_rows(v);
  const auto real = mask.defined() ? mask.contiguous() : mask;
  const Successors successors(successor_heads, real);
  const auto statistics = q.options().dtype(statistics_type(q));
  const AttentionResult result{
      written_to(output, q_rows),  // [batch, heads, length, d_head]
      at::empty({q.size(0), q.size(1), q.size(2)}, statistics),
      at::empty({q.size(0), q.size(1), q.size(2), 2}, statistics)};
  const auto args_of = [&]<class T>() {
    return arguments<T>(q_rows, k_rows, v_rows, rounds, real, successors,
                        result);
  };
  const LaunchGuard launch(q);
  if (q.is_cuda() && q.scalar_type() == at::kBFloat16) {
    const auto args = args_of.operator()<kernels::Bf16>();
    const auto workspace =
        workspace_of(kernels::cuda::interval_attention_workspace(args), q);
    kernels::cuda::interval_attention(args, workspace.mutable_data_ptr(),
                                      launch.stream());
  } else if (q.is_cuda()) {
    kernels::cuda::interval_attention(args_of.operator()<float>(),
                                      launch.stream());
  } else if (q.scalar_type() == at::kDouble) {
    kernels::cpu::interval_attention(args_of.operator()<double>());
  } else {
    kernels::cpu::interval_attention(args_of.operator()<float>());
  }
  return result;
}

AttentionGradients interval_attention_backward(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const IntervalRounds& rounds, const at::Tensor& mask,
    const AttentionResult& result, const at::Tensor& d_output,
    int64_t successor_heads, const AttentionGradients& into) {
  const auto q_rows = with_contiguous_rows(q);
  const auto k_rows = with_contiguous_rows(k);
  const auto v_rows = with_contiguous_rows(v);
  const auto d_output_rows = with_contiguous_rows(d_output);
  const auto real = mask.defined() ? mask.contiguous() : mask;
  const Successors successors(successor_heads, real);
  const AttentionGradients gradients{written_to(into.q, q_rows),
                                     written_to(into.k, k_rows),
                                     written_to(into.v, v_rows)};
  const auto args_of = [&]<class T>() {
    return kernels::IntervalAttentionGradArgs<T>{
        arguments<T>(q_rows, k_rows, v_rows, rounds, real, successors, result),
        rows_of<T>(d_output_rows), mutable_rows_of<T>(gradients.q),
        mutable_rows_of<T>(gradients.k), mutable_rows_of<T>(gradients.v)};
  };
  const LaunchGuard launch(q);
  if (q.is_cuda() && q.scalar_type() == at::kBFloat16) {
    const auto args = args_of.operator()<kernels::Bf16>();
    const auto workspace =
        workspace_of(kernels::cuda::interval_attention_grad_workspace(args), q);
    kernels::cuda::interval_attention_grad(args, workspace.mutable_data_ptr(),
                                           launch.stream());
  } else if (q.is_cuda()) {
    kernels::cuda::interval_attention_grad(args_of.operator()<float>(),
                                           launch.stream());
  } else if (q.scalar_type() == at::kDouble) {
    kernels::cpu::interval_attention_grad(args_of.operator()<double>());
  } else {
    kernels::cpu::interval_attention_grad(args_of.operator()<float>());
  }
  return gradients;
}

}  // namespace reformer
