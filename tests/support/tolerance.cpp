#include "tests/support/tolerance.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/support/reference.h"

namespace reformer {
namespace {

struct Part {
  const char* name;
  at::Tensor AttentionAnswer::*tensor;
  bool cancels;  // the gradient of a score is do . v less their mean
};

constexpr Part kParts[] = {
    {"output", &AttentionAnswer::output, false},
    {"lse", &AttentionAnswer::lse, false},
    {"dq", &AttentionAnswer::d_q, true},
    {"dk", &AttentionAnswer::d_k, true},
    {"dv", &AttentionAnswer::d_v, false},
};

// Not a copy: the strides are part of the input.
at::Tensor leaf(const at::Tensor& x) {
  return x.defined() ? x.detach().set_requires_grad(true) : x;
}

double largest(const at::Tensor& x) {
  return x.masked_fill(x.isinf(), 0).abs().max().item<double>();
}

// Of all rows but those of NaN: padding.
double largest_norm(const at::Tensor& rows) {
  return rows.nan_to_num(0).norm(2, -1).max().item<double>();
}

}  // namespace

AttentionInputs AttentionInputs::to(at::ScalarType dtype) const {
  const auto as = [&](const at::Tensor& x) {
    return x.defined() ? x.to(dtype) : x;
  };
  return {as(q), as(k), as(v), as(d_output), mask, successor_heads};
}

AttentionAnswer answer(const Attention& attention,
                       const AttentionInputs& inputs) {
  const auto q = leaf(inputs.q);
  const auto k = leaf(inputs.k);
  const auto v = leaf(inputs.v);
  const auto result = attention(q, k, v);
  result.output.backward(inputs.d_output);
  const auto gradient = [](const at::Tensor& x) {
    return x.defined() ? x.grad() : x;
  };
  return {result.output.detach(), result.lse, gradient(q), gradient(k),
          gradient(v)};
}

AttentionAnswer reference_answer(const AttentionInputs& inputs,
                                 const at::Tensor& attended) {
  return answer(
      [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        return reference::attention(q, k, v, attended, inputs.mask,
                                    inputs.successor_heads);
      },
      inputs);
}

Tolerance::Tolerance(const AttentionInputs& inputs, const at::Tensor& attended)
    : reference_(reference_answer(inputs.to(at::kDouble), attended)),
      plain_(reference_answer(inputs.to(at::kFloat), attended)),
      few_keys_(attended.sum(-1).max().item<int64_t>() <= 2),
      largest_term_(largest_norm(inputs.d_output) * largest_norm(inputs.v)) {}

// With one or two keys, or identical ones, dq is the small rest, or the
// nothing, that large sums leave when they cancel, and rounds as they do.
double Tolerance::scale_of(const at::Tensor& exact, bool cancels) const {
  const double scale = largest(exact);
  const bool nothing_left = few_keys_ || scale < 1e-9;
  return cancels && nothing_left ? std::max(scale, largest_term_) : scale;
}

void Tolerance::expect_as_good_as_plain(const AttentionAnswer& fast,
                                        const std::string& name,
                                        double leniency) const {
  constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
  for (const auto& part : kParts) {
    const auto& tested = fast.*part.tensor;
    const auto& exact = reference_.*part.tensor;
    if (!tested.defined()) continue;
    const double plain_error = max_error(plain_.*part.tensor, exact);
    const double scale = scale_of(exact, part.cancels);
    EXPECT_LE(max_error(tested, exact),
              leniency * (2 * plain_error + 4 * kEpsilon * scale))
        << part.name << " of " << name << "; the plain version errs by "
        << plain_error << ", the largest number is " << scale;
  }
}

void Tolerance::expect_exact(const AttentionAnswer& fast,
                             const std::string& name) const {
  for (const auto& part : kParts) {
    const auto& tested = fast.*part.tensor;
    const auto& exact = reference_.*part.tensor;
    if (!tested.defined()) continue;
    ASSERT_EQ(tested.scalar_type(), at::kDouble);
    EXPECT_LE(max_error(tested, exact), 1e-11 * scale_of(exact, part.cancels))
        << part.name << " of " << name;
  }
}

double max_error(const at::Tensor& a, const at::Tensor& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a.sizes() != b.sizes()) return kInfinity;
  const auto x = a.to(at::kDouble);
  const auto y = b.to(at::kDouble);
  const auto error = (x - y).abs().masked_fill(x == y, 0);
  return error.nan_to_num(kInfinity).max().item<double>();
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype()) return false;
  const auto x = a.contiguous();
  const auto y = b.contiguous();
  return x.nbytes() == 0 ||  // of which there may be no pointer
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

bool same_bits(const AttentionAnswer& a, const AttentionAnswer& b) {
  return std::all_of(std::begin(kParts), std::end(kParts),
                     [&](const Part& part) {
                       return same_bits(a.*part.tensor, b.*part.tensor);
                     });
}

}  // namespace reformer
