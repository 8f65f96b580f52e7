#include "reformer/ops/packed_matrices.h"

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include <optional>
#include <string_view>

#include "reformer/ops/matmul.h"

namespace reformer {
namespace {

thread_local PackedMatrices* used = nullptr;

using Scalars = c10::List<std::optional<at::Scalar>>;
using Pack = at::Tensor(const at::Tensor&, std::optional<int64_t>);
using Linear = at::Tensor(const at::Tensor&, const at::Tensor&,
                          const std::optional<at::Tensor>&, std::string_view,
                          Scalars, std::optional<std::string_view>);

// oneDNN's, by the names that LibTorch has registered them under.
struct Operators {
  std::optional<c10::OperatorHandle> pack;
  std::optional<c10::OperatorHandle> linear;

  Operators() {
    auto& known = c10::Dispatcher::singleton();
    pack = known.findSchema({"mkldnn::_reorder_linear_weight", ""});
    linear = known.findSchema({"mkldnn::_linear_pointwise", ""});
    const auto runs = [](const auto& op) {
      return op && op->hasKernelForDispatchKey(c10::DispatchKey::CPU);
    };
    if (!runs(pack)) pack.reset();
    if (!linear) pack.reset();
  }

  bool there() const { return pack.has_value(); }
};

const Operators& operators() {
  static const Operators all;
  return all;
}

bool is_dense_float(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.is_contiguous();
}

}  // namespace

PackedMatrices::Use::Use(PackedMatrices* matrices) : before_(used) {
  used = matrices;
}
PackedMatrices::Use::~Use() { used = before_; }

PackedMatrices* PackedMatrices::in_use() { return used; }

const at::Tensor& PackedMatrices::packed(const at::Tensor& weight) {
  constexpr int64_t kRows =
      128;  // that the layout is made for: a few sentences
  const auto [found, is_new] =
      matrices_.try_emplace(weight.const_data_ptr(), Packed{weight, {}});
  auto& [given, made] = found->second;
  if (is_new) {
    made = operators().pack->typed<Pack>().call(weight.detach(), kRows);
  }
  static const at::Tensor none;
  return given.sizes() == weight.sizes() ? made : none;
}

at::Tensor PackedMatrices::linear(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& bias, bool relu) {
  const bool fits = operators().there() && !at::GradMode::is_enabled() &&
                    x.is_cpu() && x.scalar_type() == at::kFloat &&
                    is_dense_float(weight) &&
                    (!bias.defined() || is_dense_float(bias));
  if (!fits) return {};
  const auto rows = as_matrix(x).contiguous();
  const auto& matrix = packed(weight);
  if (!matrix.defined()) return {};
  auto sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return operators()
      .linear->typed<Linear>()
      .call(rows, matrix,
            bias.defined() ? std::optional<at::Tensor>(bias.detach())
                           : std::nullopt,
            relu ? "relu" : "none", Scalars(), std::nullopt)
      .view(sizes);
}

}  // namespace reformer
