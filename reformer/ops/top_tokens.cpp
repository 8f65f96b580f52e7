#include "reformer/ops/top_tokens.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/kernels/top_tokens.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kTopTokens = "top_tokens";

at::Tensor with_contiguous_columns(const at::Tensor& x) {
  return x.stride(1) == 1 ? x : x.contiguous();
}

}  // namespace

TopTokens::TopTokens(int64_t rows, int64_t k, int64_t besides,
                     at::ScalarType type)
    : k_(k),
      besides_(besides),
      max_(at::full({rows}, -std::numeric_limits<double>::infinity(), type)),
      sum_(at::zeros({rows}, type)),
      besides_logit_(
          at::full({rows}, -std::numeric_limits<double>::infinity(), type)),
      best_(
          at::full({rows, k}, -std::numeric_limits<double>::infinity(), type)),
      tokens_(at::zeros({rows, k}, at::kInt)) {}

void TopTokens::add(const at::Tensor& logits) {
  require(
      logits.dim() == 2 && logits.is_cpu() && logits.size(0) == max_.size(0) &&
          logits.scalar_type() == max_.scalar_type(),
      kTopTokens, ": logits must be ", at::toString(max_.scalar_type()), " [",
      max_.size(0), ", n] on the CPU, got ", at::toString(logits.scalar_type()),
      " ", logits.sizes(), " on ", logits.device().str());
  const auto rows = with_contiguous_columns(logits);
  const auto run = [&]<class T>() {
    kernels::cpu::top_tokens(kernels::cpu::TopTokensArgs<T>{
        rows.const_data_ptr<T>(),
        rows.stride(0),
        rows.size(0),
        rows.size(1),
        seen_,
        besides_,
        k_,
        {max_.mutable_data_ptr<T>(), sum_.mutable_data_ptr<T>(),
         besides_logit_.mutable_data_ptr<T>(), best_.mutable_data_ptr<T>(),
         tokens_.mutable_data_ptr<int32_t>()}});
  };
  max_.scalar_type() == at::kDouble ? run.operator()<double>()
                                    : run.operator()<float>();
  seen_ += rows.size(1);
}

at::Tensor TopTokens::result() const {
  const auto log_sum =  // [rows, 1]
      (max_.to(at::kDouble) + sum_.to(at::kDouble).log()).unsqueeze(1);
  return at::cat({best_.to(at::kDouble) - log_sum, tokens_.to(at::kDouble),
                  besides_logit_.to(at::kDouble).unsqueeze(1) - log_sum},
                 1);
}

at::Tensor top_tokens(const at::Tensor& logits, int64_t k, int64_t besides) {
  const at::NoGradGuard no_grad;
  require(logits.dim() == 2 && logits.size(1) >= 1, kTopTokens,
          ": logits must be [rows, vocabulary], got sizes ", logits.sizes());
  check_type_and_device(kTopTokens, "logits", logits);
  require(k >= 1 && k <= std::min(logits.size(1), kernels::kMaxTopTokens),
          kTopTokens, ": k must be from 1 to ",
          std::min(logits.size(1), kernels::kMaxTopTokens), ", got ", k);
  require(besides >= 0 && besides < logits.size(1), kTopTokens,
          ": the token besides must be from 0 to ", logits.size(1) - 1,
          ", got ", besides);
  if (logits.is_cpu()) {
    TopTokens top(logits.size(0), k, besides, logits.scalar_type());
    top.add(logits);
    return top.result();
  }
  require(logits.scalar_type() == at::kFloat, kTopTokens,
          ": on CUDA float32 is required, got ",
          at::toString(logits.scalar_type()));
  const auto rows = with_contiguous_columns(logits);
  const auto result =
      at::empty({rows.size(0), 2 * k + 1}, rows.options().dtype(at::kDouble));
  if (rows.size(0) == 0) return result;
  const LaunchGuard launch(rows);
  kernels::cuda::top_tokens(
      {rows.const_data_ptr<float>(), rows.stride(0), rows.size(0), rows.size(1),
       besides, k, result.mutable_data_ptr<double>()},
      launch.stream());
  return result;
}

}  // namespace reformer
