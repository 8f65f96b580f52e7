#include "reformer/ops/adafactor_update.h"

#include <ATen/ops/empty.h>

#include <cstring>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/kernels/adafactor.h"

namespace reformer {
namespace {

constexpr const char* kOp = "adafactor_update";

void check(const at::Tensor& x, at::Device device) {
  require(x.scalar_type() == at::kFloat && x.is_contiguous() &&
              x.device() == device && device.is_cuda(),
          kOp, ": contiguous float32 on one GPU is required, got ",
          at::toString(x.scalar_type()), " on ", x.device().str());
}

kernels::AdafactorTensor tensor_of(const AdafactorParameter& parameter) {
  const auto& [value, gradient, rows, columns] = parameter;
  for (const auto& x : {value, gradient, columns}) check(x, value.device());
  kernels::AdafactorTensor tensor{};
  tensor.w = value.mutable_data_ptr<float>();
  tensor.g = gradient.const_data_ptr<float>();
  tensor.c = columns.mutable_data_ptr<float>();
  tensor.rows = 1;
  tensor.columns = value.dim() == 0 ? 1 : value.size(-1);
  if (rows.defined()) {
    check(rows, value.device());
    tensor.r = rows.mutable_data_ptr<float>();
    tensor.rows = value.size(-2);
  }
  tensor.matrices = value.numel() / (tensor.rows * tensor.columns);
  return tensor;
}

}  // namespace

void adafactor_update(const std::vector<AdafactorParameter>& parameters,
                      double beta2, double learning_rate) {
  std::vector<kernels::AdafactorTensor> tensors;
  for (const auto& parameter : parameters) {
    if (parameter.value.numel() > 0) tensors.push_back(tensor_of(parameter));
  }
  if (tensors.empty()) return;
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

}  // namespace reformer
