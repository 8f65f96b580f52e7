#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "python/csrc/operators.h"

namespace reformer::python {
namespace {

Tensor or_undefined(const MaybeTensor& x) { return x.value_or(Tensor()); }

MaybeTensor or_none(const Tensor& x) {
  return x.defined() ? MaybeTensor(x) : std::nullopt;
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
    const auto [d_q, d_k, d_v] =
        op.call(d_outputs[0], saved[0], or_none(saved[1]), saved[2], saved[3],
                saved[4], saved[5], or_none(saved[6]), saved[7], saved[8],
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

}  // namespace

TORCH_LIBRARY_IMPL(reformer, Autograd, m) {
  m.impl("interval_attention_forward", interval_attention_autograd);
}

}  // namespace reformer::python
