#include "tests/support/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/twin.h"

namespace reformer {
namespace {

at::Tensor leaf(const at::Tensor& x) {
  return x.defined() ? x.detach().clone(at::MemoryFormat::Preserve)
                           .set_requires_grad(true)
                     : x;
}

// What went into each number: one key has no gradient as a score, because two
// equal sums cancel, but their rounding is still there.
double scale_of(const AttentionAnswer& answer) {
  double scale = answer.d_q.abs().max().item<double>();
  scale = std::max(scale, answer.d_v.abs().max().item<double>());
  if (answer.d_k.defined()) {
    scale = std::max(scale, answer.d_k.abs().max().item<double>());
  }
  return scale;
}

double largest(const at::Tensor& x) {
  return x.masked_fill(x.isinf(), 0).abs().max().item<double>();
}

struct Part {
  const char* name;
  at::Tensor AttentionAnswer::* tensor;
  bool gradient;
};

constexpr Part kParts[] = {
    {"output", &AttentionAnswer::output, false},
    {"lse", &AttentionAnswer::lse, false},
    {"dq", &AttentionAnswer::d_q, true},
    {"dk", &AttentionAnswer::d_k, true},
    {"dv", &AttentionAnswer::d_v, true},
};

}  // namespace

AttentionInputs AttentionInputs::to(at::ScalarType dtype) const {
  const auto as = [&](const at::Tensor& x) {
    return x.defined() ? x.to(dtype) : x;
  };
  return {as(q), as(k), as(v), as(d_output), mask};
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

AttentionAnswer twin_answer(const AttentionInputs& inputs,
                            const at::Tensor& attended) {
  return answer(
      [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        return twin::attention(q, k, v, attended, inputs.mask);
      },
      inputs);
}

Judge::Judge(const AttentionInputs& inputs, const at::Tensor& attended)
    : reference(twin_answer(inputs.to(at::kDouble), attended)),
      plain(twin_answer(inputs.to(at::kFloat), attended)) {}

void Judge::expect_as_good_as_plain(const AttentionAnswer& fast,
                                    const std::string& name) const {
  for (const auto& part : kParts) {
    const auto& tested = fast.*part.tensor;
    const auto& exact = reference.*part.tensor;
    if (!tested.defined()) continue;
    const double plain_error = max_error(plain.*part.tensor, exact);
    const double scale = part.gradient ? scale_of(reference) : largest(exact);
    const double bar = 2 * plain_error +
                       4 * std::numeric_limits<float>::epsilon() * scale;
    EXPECT_LE(max_error(tested, exact), bar)
        << part.name << " of " << name << "; the plain version errs by "
        << plain_error << ", the largest number is " << scale;
  }
}

void Judge::expect_exact(const AttentionAnswer& fast,
                         const std::string& name) const {
  for (const auto& part : kParts) {
    const auto& tested = fast.*part.tensor;
    const auto& exact = reference.*part.tensor;
    if (!tested.defined()) continue;
    ASSERT_EQ(tested.scalar_type(), at::kDouble);
    const double scale = part.gradient ? scale_of(reference) : largest(exact);
    EXPECT_LE(max_error(tested, exact), 1e-11 * scale)
        << part.name << " of " << name;
  }
}

double max_error(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  const auto x = a.to(at::kDouble);
  const auto y = b.to(at::kDouble);
  const auto error = (x - y).abs().masked_fill(x == y, 0);
  return error.nan_to_num(std::numeric_limits<double>::infinity())
      .max()
      .item<double>();
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype()) return false;
  const auto x = a.contiguous();
  const auto y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

bool same_bits(const AttentionAnswer& a, const AttentionAnswer& b) {
  for (const auto& part : kParts) {
    if (!same_bits(a.*part.tensor, b.*part.tensor)) return false;
  }
  return true;
}

}  // namespace reformer
