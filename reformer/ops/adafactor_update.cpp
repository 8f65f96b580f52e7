#include "reformer/ops/adafactor_update.h"

#include <ATen/ops/empty.h>

#include <cstring>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/kernels/adafactor.h"

namespace reformer {
namespace {

constexpr const char* kAdafactorUpdate = "adafactor_update";

void check(const at::Tensor& x, const at::Tensor& value) {
  const auto type = value.scalar_type();
  require(type == at::kFloat || (type == at::kDouble && value.is_cpu()),
          kAdafactorUpdate, ": float32, or float64 on a CPU, is required, got ",
          type, " on ", value.device().str());
  require(x.scalar_type() == type && x.is_contiguous() &&
              x.device() == value.device(),
          kAdafactorUpdate, ": contiguous ", type, " on ", value.device().str(),
          " is required, got ", x.scalar_type(), " on ", x.device().str());
}

void check(const AdafactorParameter& parameter) {
  const auto& [value, gradient, rows, columns] = parameter;
  for (const auto& x : {value, gradient, columns}) check(x, value);
  if (rows.defined()) check(rows, value);
}

template <class T>
void update_on_cpu(const AdafactorParameter& parameter, double beta2,
                   double learning_rate) {
  const auto& [value, gradient, rows, columns] = parameter;
  const bool is_matrix = rows.defined();
  kernels::cpu::AdafactorArgs<T> args{};
  args.w = value.mutable_data_ptr<T>();
  args.g = gradient.const_data_ptr<T>();
  args.r = is_matrix ? rows.mutable_data_ptr<T>() : nullptr;
  args.c = columns.mutable_data_ptr<T>();
  args.rows = is_matrix ? value.size(-2) : 1;
  args.columns = is_matrix ? value.size(-1) : value.numel();
  args.matrices = value.numel() / (args.rows * args.columns);
  args.beta2 = beta2;
  args.learning_rate = learning_rate;
  kernels::cpu::adafactor(args);
}

kernels::AdafactorTensor tensor_of(const AdafactorParameter& parameter) {
  const auto& [value, gradient, rows, columns] = parameter;
  kernels::AdafactorTensor tensor{};
  tensor.w = value.mutable_data_ptr<float>();
  tensor.g = gradient.const_data_ptr<float>();
  tensor.c = columns.mutable_data_ptr<float>();
  tensor.rows = 1;
  tensor.columns = value.dim() == 0 ? 1 : value.size(-1);
  if (rows.defined()) {
    tensor.r = rows.mutable_data_ptr<float>();
    tensor.rows = value.size(-2);
  }
  tensor.matrices = value.numel() / (tensor.rows * tensor.columns);
  return tensor;
}

void update_on_gpu(const std::vector<AdafactorParameter>& parameters,
                   double beta2, double learning_rate) {
  std::vector<kernels::AdafactorTensor> tensors;
  for (const auto& parameter : parameters) {
    tensors.push_back(tensor_of(parameter));
  }
  const auto count = static_cast<int64_t>(tensors.size());
  const auto& device_of = parameters[0].value;
  const LaunchGuard launch(device_of);
  const int64_t bytes = kernels::cuda::adafactor_plan(tensors.data(), count);
  const auto table_bytes = count * int64_t{sizeof(tensors[0])};
  auto table = at::empty({table_bytes}, at::kByte);
  std::memcpy(table.mutable_data_ptr(), tensors.data(),
              static_cast<size_t>(table_bytes));
  // Pinned, or the copy would wait for all that the device has to do.
  const auto device_table = table.pin_memory().to(device_of.device(), at::kByte,
                                                  /*non_blocking=*/true);
  const auto workspace = workspace_of(bytes, device_of);
  kernels::cuda::adafactor({tensors.data(),
                            static_cast<const kernels::AdafactorTensor*>(
                                device_table.const_data_ptr()),
                            count, beta2, learning_rate},
                           workspace.mutable_data_ptr(), launch.stream());
}

}  // namespace

void adafactor_update(const std::vector<AdafactorParameter>& parameters,
                      double beta2, double learning_rate) {
  std::vector<AdafactorParameter> some;  // of which there is something
  for (const auto& parameter : parameters) {
    check(parameter);
    if (parameter.value.numel() > 0) some.push_back(parameter);
  }
  if (some.empty()) return;
  if (some[0].value.is_cuda()) {
    return update_on_gpu(some, beta2, learning_rate);
  }
  for (const auto& parameter : some) {
    if (parameter.value.scalar_type() == at::kDouble) {
      update_on_cpu<double>(parameter, beta2, learning_rate);
    } else {
      update_on_cpu<float>(parameter, beta2, learning_rate);
    }
  }
}

}  // namespace reformer
