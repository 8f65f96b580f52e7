#include "reformer/ops/counter_dropout.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kCounterDropout = "counter_dropout";

at::Tensor drop(const at::Tensor& x, double probability, const DropoutKey& key,
                int64_t first_position) {
  const auto dense = x.contiguous();
  auto y = at::empty_like(dense);
  const auto arguments = [&]<class T>() {
    return kernels::CounterDropoutArgs<T>{
        key,
        static_cast<const T*>(dense.const_data_ptr()),
        static_cast<T*>(y.mutable_data_ptr()),
        x.size(0),
        x.size(1),
        x.size(2),
        first_position,
        probability};
  };
  if (x.is_cuda()) {
    const LaunchGuard launch(x);
    if (x.scalar_type() == at::kBFloat16) {
      kernels::cuda::counter_dropout(arguments.operator()<kernels::Bf16>(),
                                     launch.stream());
    } else {
      kernels::cuda::counter_dropout(arguments.operator()<float>(),
                                     launch.stream());
    }
  } else if (x.scalar_type() == at::kDouble) {
    kernels::cpu::counter_dropout(arguments.operator()<double>());
  } else {
    kernels::cpu::counter_dropout(arguments.operator()<float>());
  }
  return y;
}

class CounterDropout : public torch::autograd::Function<CounterDropout> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& x, double probability,
                            const DropoutKey& key, int64_t first_position) {
    auto& data = context->saved_data;
    data["probability"] = probability;
    data["seed"] = static_cast<int64_t>(key.seed);
    data["step"] = static_cast<int64_t>(key.step);
    data["site"] = static_cast<int64_t>(key.site);
    data["step_on_device"] = reinterpret_cast<int64_t>(key.step_on_device);
    data["first_example"] = key.first_example;
    data["first_position"] = first_position;
    return drop(x, probability, key, first_position);
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
    return {drop(d_outputs[0], data["probability"].toDouble(), key,
                 data["first_position"].toInt()),
            at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor counter_dropout(const at::Tensor& x, double probability,
                           const DropoutKey& key, int64_t first_position) {
  require(x.defined() && x.dim() == 3, kCounterDropout,
          ": x must be [batch, length, width]");
  check_type_and_device(kCounterDropout, "x", x);
  require(probability >= 0 && probability < 1, kCounterDropout,
          ": the probability must be from 0 to below 1, got ", probability);
  if (probability == 0) return x;
  return CounterDropout::apply(x, probability, key, first_position);
}

}  // namespace reformer
