#include "reformer/ops/linear.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_addmm_activation.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>

#include "reformer/device/device.h"
#include "reformer/kernels/small_gemm.h"
#include "reformer/ops/matmul.h"
#include "reformer/ops/packed_matrices.h"

namespace reformer {
namespace {

using kernels::GemmResult;

// Without LibTorch's dispatcher where nothing is to be done: a step has dozens.
at::Tensor converted(const at::Tensor& x, at::ScalarType type) {
  return !x.defined() || x.scalar_type() == type ? x : x.to(type);
}

at::Tensor library_linear(const at::Tensor& x, const at::Tensor& weight,
                          const at::Tensor& bias, Activation activation) {
  if (at::GradMode::is_enabled()) {
    return activated(at::linear(x, weight, bias), activation);
  }
  // A GPU's matmul applies it to its sums.
  const bool relu_in_matmul =
      x.is_cuda() && bias.defined() && keeps_result(activation);
  if (!relu_in_matmul) {
    auto y = at::linear(x, weight, bias);
    activate_in_place(y, activation);
    return y;
  }
  auto sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  const auto y =
      at::_addmm_activation(bias, as_matrix(x), weight.t()).view(sizes);
  return activation == Activation::kReluSquared ? y.square_() : y;
}

// x W^T + bias in a type wider than x's, of factors rounded to x's type; sums
// and bias are not. What has gradients is multiplied in the wide type: the same
// matmuls, slower.
at::Tensor wide_linear(const at::Tensor& x, const LinearWeights& matrix,
                       at::ScalarType result) {
  const auto weight = converted(matrix.weight, x.scalar_type());
  const auto bias = converted(matrix.bias, result);
  if (at::GradMode::is_enabled()) {
    return at::linear(x.to(result), weight.to(result), bias);
  }
  auto sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  const auto y = matmul(as_matrix(x), weight.t(), result).view(sizes);
  return bias.defined() ? y.add_(bias) : y;
}

int64_t rows_in(const at::Tensor& x) { return x.numel() / x.size(-1); }

bool is_dense_float(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat && x.is_contiguous();
}

bool is_aligned(const at::Tensor& x) {
  return reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

bool fits_kernel(const at::Tensor& x, const LinearWeights& matrix,
                 at::ScalarType compute) {
  const int64_t width = x.size(-1);
  const int64_t rows = rows_in(x);
  return !at::GradMode::is_enabled() && x.is_cuda() && x.is_contiguous() &&
         (compute == at::kFloat || compute == at::kBFloat16) && rows >= 1 &&
         rows <= kernels::kMaxGemmRows && width % 8 == 0 &&
         width * at::elementSize(compute) <= kernels::kMaxRowBytes &&
         is_aligned(x) && is_aligned(matrix.weight) &&
         matrix.weight.is_contiguous() &&
         (!matrix.bias.defined() || is_dense_float(matrix.bias));
}

at::Tensor empty_result(const at::Tensor& x, int64_t outputs,
                        at::ScalarType type) {
  auto sizes = x.sizes().vec();
  sizes.back() = outputs;
  return at::empty(sizes, x.options().dtype(type));
}

// The matrices as the kernel takes them, in the type that it computes with.
template <class T>
void launch(const at::Tensor& x, const NormWeights& norm,
            const std::vector<LinearWeights>& matrices,
            const std::vector<at::Tensor>& results, Activation activation,
            GemmResult result, at::ScalarType compute) {
  kernels::SmallGemmArgs<T> args{};
  args.x = x.const_data_ptr();
  if (norm.weight.defined()) {
    args.norm_weight = norm.weight.const_data_ptr<float>();
    args.norm_bias = norm.bias.const_data_ptr<float>();
    args.norm_epsilon = static_cast<float>(norm.epsilon);
  }
  std::vector<at::Tensor> weights;  // keep what was converted
  for (const LinearWeights& matrix : matrices) {
    const at::Tensor& bias = matrix.bias;
    weights.push_back(converted(matrix.weight, compute));
    args.matrices[args.n_matrices] = {
        static_cast<const T*>(weights.back().const_data_ptr()),
        bias.defined() ? bias.const_data_ptr<float>() : nullptr,
        results[args.n_matrices].mutable_data_ptr(), matrix.weight.size(0)};
    ++args.n_matrices;
  }
  args.activation = activation;
  args.result = result;
  args.rows = rows_in(x);
  args.width = x.size(-1);
  const LaunchGuard launch(x);
  kernels::cuda::small_gemm(args, launch.stream());
}

void launch(const at::Tensor& x, const NormWeights& norm,
            const std::vector<LinearWeights>& matrices,
            const std::vector<at::Tensor>& results, Activation activation,
            GemmResult result, at::ScalarType compute) {
  compute == at::kBFloat16
      ? launch<kernels::Bf16>(x, norm, matrices, results, activation, result,
                              compute)
      : launch<float>(x, norm, matrices, results, activation, result, compute);
}

bool fit_kernel(const at::Tensor& x, const NormWeights& norm,
                const std::vector<LinearWeights>& matrices,
                const LinearTypes& types) {
  bool fit = matrices.size() <= size_t{kernels::kMaxGemmMatrices} &&
             is_dense_float(x) && is_dense_float(norm.weight) &&
             is_dense_float(norm.bias) &&
             (types.result == at::kFloat || types.result == types.compute);
  for (const auto& matrix : matrices) {
    fit = fit && fits_kernel(x, matrix, types.compute);
  }
  return fit;
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const LinearWeights& matrix,
                  Activation activation) {
  const auto type = x.scalar_type();
  if (auto* packed = PackedMatrices::in_use()) {
    const bool relu = activation == Activation::kRelu;
    const auto y = packed->linear(x, matrix.weight, matrix.bias, relu);
    if (y.defined()) return relu ? y : activated(y, activation);
  }
  return library_linear(x, matrix.weight.to(type), converted(matrix.bias, type),
                        activation);
}

std::vector<at::Tensor> norm_linear(const at::Tensor& x,
                                    const NormWeights& norm,
                                    const std::vector<LinearWeights>& matrices,
                                    const LinearTypes& types,
                                    Activation activation) {
  std::vector<at::Tensor> results;
  if (fit_kernel(x, norm, matrices, types)) {
    for (const auto& matrix : matrices) {
      results.push_back(empty_result(x, matrix.weight.size(0), types.result));
    }
    launch(
        x, norm, matrices, results, activation,
        types.result == at::kFloat ? GemmResult::kFloat : GemmResult::kRounded,
        types.compute);
    return results;
  }
  const auto normed = layer_norm(x, norm, types.compute);
  for (const auto& matrix : matrices) {
    results.push_back(
        types.result == types.compute
            ? linear(normed, matrix, activation)
            : activated(wide_linear(normed, matrix, types.result), activation));
  }
  return results;
}

void add_linear(const at::Tensor& x, const LinearWeights& matrix,
                const at::Tensor& y) {
  const auto type = x.scalar_type();
  if (fits_kernel(x, matrix, type) && is_dense_float(y)) {
    return launch(x, {}, {matrix}, {y}, Activation::kNone, GemmResult::kAdded,
                  type);
  }
  add_linear_exactly(x, matrix, y, /*scale=*/1);
}

void add_linear_exactly(const at::Tensor& x, const LinearWeights& matrix,
                        const at::Tensor& y, double scale) {
  const auto type = x.scalar_type();
  if (!matrix.bias.defined() && y.is_contiguous() &&
      PackedMatrices::in_use() == nullptr) {
    return add_matmul(as_matrix(y), as_matrix(x),
                      converted(matrix.weight, type).t(), scale);
  }
  y.add_(linear(x, matrix), scale);
}

}  // namespace reformer
