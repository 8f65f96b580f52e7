#include "reformer/ops/rotary.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/kernels/rotary.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kRotary = "rotary";

void check_config(const RotaryConfig& config, const at::Tensor& x) {
  require(config.first_head >= 0 && config.first_head <= x.size(1), kRotary,
          ": first_head must be 0 to ", x.size(1), ", got ", config.first_head);
  const int64_t most = std::min(x.size(3) / 2, kernels::kMaxRotaryPairs);
  require(config.pairs >= 0 && config.pairs <= most, kRotary,
          ": pairs must be 0 to ", most, ", got ", config.pairs);
}

void check_first(const at::Tensor& first, const at::Tensor& x) {
  if (!first.defined()) return;
  require(first.scalar_type() == at::kLong && first.is_contiguous() &&
              first.sizes() == at::IntArrayRef({x.size(0)}) &&
              first.device() == x.device(),
          kRotary, ": first must be [", x.size(0), "] int64 on ",
          x.device().str(), ", got ", at::toString(first.scalar_type()), " ",
          first.sizes(), " on ", first.device().str());
}

at::Tensor turned(const at::Tensor& x, const RotaryConfig& config,
                  const at::Tensor& first, bool back) {
  const auto rows = with_contiguous_rows(x);
  const auto y = empty_rows_like(rows);
  const auto arguments = [&]<class T>() {
    return kernels::RotaryArgs<T>{
        rows_of<T>(rows),
        mutable_rows_of<T>(y),
        first.defined() ? first.const_data_ptr<int64_t>() : nullptr,
        config.first_head,
        config.pairs,
        back,
        x.size(0),
        x.size(1),
        x.size(2),
        x.size(3)};
  };
  const LaunchGuard launch(x);
  if (x.is_cuda() && x.scalar_type() == at::kBFloat16) {
    kernels::cuda::rotary(arguments.operator()<kernels::Bf16>(),
                          launch.stream());
  } else if (x.is_cuda()) {
    kernels::cuda::rotary(arguments.operator()<float>(), launch.stream());
  } else if (x.scalar_type() == at::kDouble) {
    kernels::cpu::rotary(arguments.operator()<double>());
  } else {
    kernels::cpu::rotary(arguments.operator()<float>());
  }
  return y;
}

class Rotary : public torch::autograd::Function<Rotary> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& x, const RotaryConfig& config,
                            const std::optional<at::Tensor>& first) {
    context->saved_data["first_head"] = config.first_head;
    context->saved_data["pairs"] = config.pairs;
    context->save_for_backward({*first});
    return turned(x, config, *first, /*back=*/false);
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list d_outputs) {
    auto& data = context->saved_data;
    const RotaryConfig config{data["first_head"].toInt(),
                              data["pairs"].toInt()};
    return {turned(d_outputs[0], config, context->get_saved_variables()[0],
                   /*back=*/true),
            at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor rotary(const at::Tensor& x, const RotaryConfig& config,
                  const at::Tensor& first) {
  check_vectors(kRotary, "x", x);
  check_config(config, x);
  check_first(first, x);
  if (config.pairs == 0 || config.first_head == x.size(1)) return x;
  // Optional, because autograd takes no undefined tensors as arguments.
  return Rotary::apply(x, config, std::optional(first));
}

}  // namespace reformer
