#include "reformer/ops/counter_dropout.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kCounterDropout = "counter_dropout";

void check(const at::Tensor& x, const Dropout& dropout) {
  require(x.defined() && x.dim() == 3, kCounterDropout,
          ": x must be [batch, length, width]");
  check_type_and_device(kCounterDropout, "x", x);
  require(dropout.probability >= 0 && dropout.probability < 1, kCounterDropout,
          ": the probability must be from 0 to below 1, got ",
          dropout.probability);
}

template <class X, class Y = X>
kernels::CounterDropoutArgs<X, Y> arguments(const at::Tensor& x,
                                            const at::Tensor& y,
                                            const at::Tensor& sum,
                                            const Dropout& dropout) {
  return {dropout.key,
          static_cast<const X*>(x.const_data_ptr()),
          static_cast<Y*>(y.mutable_data_ptr()),
          sum.defined() ? static_cast<const Y*>(sum.const_data_ptr()) : nullptr,
          x.size(0),
          x.size(1),
          x.size(2),
          dropout.first_position,
          dropout.probability};
}

// y = what is left of x, and `sum`, where it is defined. All contiguous.
void drop_on_gpu(const at::Tensor& x, const at::Tensor& y,
                 const at::Tensor& sum, const Dropout& dropout) {
  using kernels::Bf16;
  using kernels::cuda::counter_dropout;
  const LaunchGuard launch(x);
  const bool from_short = x.scalar_type() == at::kBFloat16;
  const bool to_short = y.scalar_type() == at::kBFloat16;
  void* const stream = launch.stream();
  if (from_short && to_short) {
    counter_dropout(arguments<Bf16>(x, y, sum, dropout), stream);
  } else if (from_short) {
    counter_dropout(arguments<Bf16, float>(x, y, sum, dropout), stream);
  } else if (to_short) {
    counter_dropout(arguments<float, Bf16>(x, y, sum, dropout), stream);
  } else {
    counter_dropout(arguments<float>(x, y, sum, dropout), stream);
  }
}

at::Tensor drop(const at::Tensor& x, const Dropout& dropout) {
  const auto dense = x.contiguous();
  auto y = at::empty_like(dense);
  if (x.is_cuda()) {
    drop_on_gpu(dense, y, {}, dropout);
  } else if (x.scalar_type() == at::kDouble) {
    kernels::cpu::counter_dropout(arguments<double>(dense, y, {}, dropout));
  } else {
    kernels::cpu::counter_dropout(arguments<float>(dense, y, {}, dropout));
  }
  return y;
}

class CounterDropout : public torch::autograd::Function<CounterDropout> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& x, const Dropout& dropout) {
    const auto& [probability, key, first_position] = dropout;
    auto& data = context->saved_data;
    data["probability"] = probability;
    data["seed"] = static_cast<int64_t>(key.seed);
    data["step"] = static_cast<int64_t>(key.step);
    data["site"] = static_cast<int64_t>(key.site);
    data["step_on_device"] = reinterpret_cast<int64_t>(key.step_on_device);
    data["first_example"] = key.first_example;
    data["first_position"] = first_position;
    return drop(x, dropout);
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list d_outputs) {
    auto& data = context->saved_data;
    const DropoutKey key{
        static_cast<uint64_t>(data["seed"].toInt()),
        static_cast<uint64_t>(data["step"].toInt()),
        static_cast<uint32_t>(data["site"].toInt()),
        reinterpret_cast<const uint64_t*>(data["step_on_device"].toInt()),
        data["first_example"].toInt()};
    return {drop(d_outputs[0], {data["probability"].toDouble(), key,
                                data["first_position"].toInt()}),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor counter_dropout(const at::Tensor& x, const Dropout& dropout) {
  check(x, dropout);
  if (dropout.probability == 0) return x;
  return CounterDropout::apply(x, dropout);
}

void add_dropped(const at::Tensor& to, const at::Tensor& sum,
                 const at::Tensor& x, const Dropout& dropout) {
  check(x, dropout);
  require(to.sizes() == x.sizes() && sum.sizes() == x.sizes(), kCounterDropout,
          ": what is added to must be ", x.sizes(), " as x, got ", sum.sizes(),
          " and ", to.sizes());
  const bool together = x.is_cuda() && dropout.probability > 0 &&
                        to.scalar_type() == at::kFloat &&
                        sum.scalar_type() == at::kFloat && x.is_contiguous() &&
                        to.is_contiguous() && sum.is_contiguous();
  if (together) {
    drop_on_gpu(x, to, sum, dropout);
  } else {
    auto out = to;
    at::add_out(out, sum, counter_dropout(x, dropout));
  }
}

at::Tensor dropped_as(at::ScalarType type, const at::Tensor& x,
                      const Dropout& dropout) {
  check(x, dropout);
  const bool longer = x.itemsize() < at::elementSize(type);
  if (!x.is_cuda() || longer || dropout.probability == 0 ||
      !x.is_contiguous()) {
    return counter_dropout(x.to(type), dropout);
  }
  const auto y = at::empty(x.sizes(), x.options().dtype(type));
  drop_on_gpu(x, y, {}, dropout);
  return y;
}

}  // namespace reformer
