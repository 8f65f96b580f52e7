#include "reformer/ops/full_attention.h"

#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/device/deterministic.h"
#include "reformer/device/out_of_memory.h"
#include "reformer/ops/checks.h"
#include "reformer/ops/natural_rounds.h"

namespace reformer {
namespace {

WindowRule everything(int64_t length) { return {Window::kTrailing, length}; }

at::Tensor cudnn_attention(const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, const at::Tensor& /*bias*/,
                           bool causal) {
  return std::get<0>(at::_scaled_dot_product_cudnn_attention(
      q, k, v, /*attn_bias=*/{}, /*compute_log_sumexp=*/true,
      /*dropout_p=*/0.0, causal));
}

bool tried_cudnn(at::Device device) {
  const c10::InferenceMode inference;
  const auto sample =
      at::zeros({1, 1, 64, 64}, at::TensorOptions(device).dtype(at::kBFloat16));
  return is_supported([&] {
    cudnn_attention(sample, sample, sample, /*bias=*/{}, /*causal=*/true);
  });
}

// Of each device: an older GPU beside a newer one may lack it.
bool cudnn_is_there(at::Device device) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, bool> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(device.index());
  if (found != known.end()) return found->second;
  return known[device.index()] = tried_cudnn(device);
}

// As LibTorch's operators take it: bias is [batch, heads, length of q, length
// of k], whatever its strides, or undefined.
std::optional<at::Tensor> optional(const at::Tensor& bias) {
  return bias.defined() ? std::optional(bias) : std::nullopt;
}

at::Tensor cpu_attention(const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& v, const at::Tensor& bias,
                         bool causal) {
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
      q, k, v, /*dropout_p=*/0.0, causal, optional(bias)));
}

at::Tensor flash_attention(const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, const at::Tensor& /*bias*/,
                           bool causal) {
  return std::get<0>(at::_scaled_dot_product_flash_attention(
      q, k, v, /*dropout_p=*/0.0, causal));
}

at::Tensor efficient_attention(const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& v, const at::Tensor& bias,
                               bool causal) {
  return std::get<0>(at::_scaled_dot_product_efficient_attention(
      q, k, v, optional(bias), /*compute_log_sumexp=*/true,
      /*dropout_p=*/0.0, causal));
}

// What it has been tried on: its gradients are reported to be NaN for other
// inputs, some of those with a mask or with a single query.
bool cudnn_serves(const at::Tensor& q, const at::Tensor& k, bool causal) {
  return causal && q.size(2) == k.size(2) && q.size(2) > 1 &&
         q.size(3) % 8 == 0 && q.size(3) <= 128 && q.size(0) <= 65535 &&
         cudnn_is_there(q.device());
}

// LibTorch's operators, called by name, take it for granted that the elements
// of a vector lie side by side, and that vectors do not overlap.
at::Tensor separate_rows(const at::Tensor& x) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride and size
  for (int64_t dim = 0; dim < x.dim(); ++dim) {
    if (x.size(dim) > 1) dims.emplace_back(x.stride(dim), x.size(dim));
  }
  std::sort(dims.begin(), dims.end());
  bool separate = x.stride(-1) == 1;
  int64_t reached = 0;  // by the dimensions so far
  for (const auto& [stride, size] : dims) {
    separate = separate && stride > reached;
    reached += stride * (size - 1);
  }
  return separate ? x : x.contiguous();
}

struct Operator {
  at::Tensor (*run)(const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v, const at::Tensor& bias, bool causal);
  const char* name;
};

// By name: the fallback of the general one builds [length, length]. CUDA's
// flash operator takes no float32 and no bias.
Operator fastest(const at::Tensor& q, const at::Tensor& k, bool biased,
                 bool causal, GradientSums gradient) {
  if (q.is_cpu()) {
    return {cpu_attention,
            "flash kernel (_scaled_dot_product_flash_attention_for_cpu)"};
  }
  if (q.scalar_type() != at::kBFloat16 || biased) {
    return {efficient_attention,
            "efficient kernel (_scaled_dot_product_efficient_attention)"};
  }
  // cuDNN's gradient is never deterministic.
  if (gradient == GradientSums::kNondeterministic &&
      cudnn_serves(q, k, causal)) {
    return {cudnn_attention,
            "cuDNN kernel (_scaled_dot_product_cudnn_attention)"};
  }
  return {flash_attention,
          "flash kernel (_scaled_dot_product_flash_attention)"};
}

// Padding, of which LibTorch's operators would want [length, length].
at::Tensor by_intervals(const at::Tensor& q, const at::Tensor& k,
                        const at::Tensor& v, bool causal,
                        const at::Tensor& mask) {
  const auto rounds = natural_rounds(q.size(2), everything(q.size(2)), causal,
                                     mask, q.device());
  // Intervals of causal rounds end before their own place; here self counts.
  if (causal) {
    rounds.interval.select(4, 1).add_(mask.unsqueeze(1).unsqueeze(-1));
  }
  return interval_attention_unchecked(q, k, v, rounds, mask).output;
}

// An operator of LibTorch whose gradient is deterministic where LibTorch's
// global switch says so. The switch is on while the gradient is computed and no
// longer: everybody else's operators look at it too.
class DeterministicAttention
    : public torch::autograd::Function<DeterministicAttention> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v,
                            const std::optional<at::Tensor>& maybe_bias,
                            bool causal) {
    const at::AutoGradMode record(true);
    const auto& bias = *maybe_bias;
    const auto leaf = [](const at::Tensor& x) {
      return x.detach().requires_grad_();
    };
    const auto run =
        fastest(q, k, bias.defined(), causal, GradientSums::kDeterministic).run;
    const std::vector<at::Tensor> inputs{leaf(q), leaf(k), leaf(v)};
    const auto output = run(inputs[0], inputs[1], inputs[2], bias, causal);
    context->saved_data["inputs"] = inputs;
    context->saved_data["output"] = output;
    return output.detach();
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list d_outputs) {
    const Deterministic deterministic;
    auto gradients = torch::autograd::grad(
        {context->saved_data["output"].toTensor()},
        context->saved_data["inputs"].toTensorVector(), {d_outputs[0]});
    context->saved_data.clear();
    gradients.emplace_back();  // of the bias
    gradients.emplace_back();  // of `causal`
    return gradients;
  }
};

// By the fastest operator, its gradients in the order that is asked for.
at::Tensor by_library(const at::Tensor& q, const at::Tensor& k,
                      const at::Tensor& v, const at::Tensor& bias, bool causal,
                      GradientSums gradient) {
  const auto [rows_q, rows_k, rows_v] =
      std::tuple(separate_rows(q), separate_rows(k), separate_rows(v));
  const bool needs_gradient =
      at::GradMode::is_enabled() &&
      (q.requires_grad() || k.requires_grad() || v.requires_grad());
  if (q.is_cuda() && gradient == GradientSums::kDeterministic &&
      needs_gradient) {
    // Optional, because autograd takes no undefined tensors as arguments.
    return DeterministicAttention::apply(rows_q, rows_k, rows_v,
                                         std::optional(bias), causal);
  }
  return fastest(q, k, bias.defined(), causal, gradient)
      .run(rows_q, rows_k, rows_v, bias, causal);
}

// 0 for real keys, and for padded ones a number that no score brings back:
// finite, or a row of them would be NaN. One row for all queries and heads, by
// strides of 0. CUDA's operator wants rows that begin at multiples of 16.
at::Tensor bias_of(const at::Tensor& mask, const at::Tensor& q) {
  constexpr double kNever = -1e30;
  constexpr int64_t kAligned = 16;
  const int64_t keys = mask.size(1);
  const int64_t wide = (keys + kAligned - 1) / kAligned * kAligned;
  const auto rows = at::empty({mask.size(0), wide}, q.options())
                        .narrow(1, 0, keys);  // [batch, length of k]
  rows.fill_(kNever).masked_fill_(mask, 0);
  return rows.view({mask.size(0), 1, 1, keys});
}

void check_keys(const char* op, const at::Tensor& q, const at::Tensor& k,
                bool same_length) {
  require(k.size(0) == q.size(0) && k.size(1) == q.size(1) &&
              k.size(3) == q.size(3) &&
              (!same_length || k.size(2) == q.size(2)) &&
              k.scalar_type() == q.scalar_type() && k.device() == q.device(),
          op, ": k must have the type, the device and the sizes of q",
          same_length ? "" : " but for the length", ", ",
          at::toString(q.scalar_type()), " ", q.sizes(), ", got ",
          at::toString(k.scalar_type()), " ", k.sizes());
}

}  // namespace

std::string full_attention_kernel(const at::Tensor& q, const at::Tensor& k,
                                  bool causal, GradientSums gradient) {
  return fastest(q, k, /*biased=*/false, causal, gradient).name;
}

at::Tensor full_attention(const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, bool causal,
                          const at::Tensor& mask, GradientSums gradient) {
  constexpr const char* kOp = "full_attention";
  check_vectors(kOp, "q", q);
  check_vectors(kOp, "k", k);
  check_like(kOp, "v", v, "k", k);
  check_mask(kOp, mask, q.device(), k.size(0), k.size(2));
  check_keys(kOp, q, k, /*same_length=*/causal || mask.defined());
  if (mask.defined()) return by_intervals(q, k, v, causal, mask);
  return by_library(q, k, v, /*bias=*/{}, causal, gradient);
}

at::Tensor cross_attention(const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, const at::Tensor& mask,
                           GradientSums gradient) {
  constexpr const char* kOp = "cross_attention";
  check_vectors(kOp, "q", q);
  check_vectors(kOp, "k", k);
  check_like(kOp, "v", v, "k", k);
  check_mask(kOp, mask, q.device(), k.size(0), k.size(2));
  check_keys(kOp, q, k, /*same_length=*/false);
  if (!mask.defined()) {
    return by_library(q, k, v, /*bias=*/{}, /*causal=*/false, gradient);
  }
  const auto bias =
      bias_of(mask, q).expand({q.size(0), q.size(1), q.size(2), k.size(2)});
  return by_library(q, k, v, bias, /*causal=*/false, gradient);
}

at::Tensor full_shared_qk_attention(const at::Tensor& qk, const at::Tensor& v,
                                    bool causal, const at::Tensor& mask,
                                    int64_t successor_heads) {
  constexpr const char* kOp = "full_shared_qk_attention";
  check_vectors(kOp, "qk", qk);
  check_like(kOp, "v", v, "qk", qk);
  check_mask(kOp, mask, qk.device(), qk.size(0), qk.size(2));
  check_successor_heads(kOp, successor_heads, qk);
  const auto rounds = natural_rounds(qk.size(2), everything(qk.size(2)), causal,
                                     mask, qk.device());
  return interval_attention_unchecked(qk, {}, v, rounds, mask, successor_heads)
      .output;
}

}  // namespace reformer
