// The tolerance of a fast operation against its reference, for its output,
// log-sum-exp and all gradients at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "reformer/ops/interval_attention.h"

namespace reformer {

struct AttentionInputs {
  at::Tensor q;
  at::Tensor k;  // undefined: shared
  at::Tensor v;
  at::Tensor d_output;
  at::Tensor mask;  // undefined: all are real
  int64_t successor_heads = 0;

  AttentionInputs to(at::ScalarType dtype) const;
};

struct AttentionAnswer {
  at::Tensor output;
  at::Tensor lse;  // undefined where an operation does not tell
  at::Tensor d_q;
  at::Tensor d_k;  // undefined where k is
  at::Tensor d_v;
};

using Attention = std::function<AttentionResult(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)>;

// Runs `attention` forward and backward, by autograd, on fresh leaves.
AttentionAnswer answer(const Attention& attention,
                       const AttentionInputs& inputs);

// The reference's answer, in the precision of the inputs.
AttentionAnswer reference_answer(const AttentionInputs& inputs,
                                 const at::Tensor& attended);

// Holds fast answers against those of the reference to the same float32 inputs.
class Tolerance {
 public:
  Tolerance(const AttentionInputs& inputs, const at::Tensor& attended);

  // Each error may be twice that of the reference in float32, + 4 eps of the
  // largest number; times `leniency`, for what is not our kernel.
  void expect_as_good_as_plain(const AttentionAnswer& fast,
                               const std::string& name,
                               double leniency = 1) const;

  // For float64.
  void expect_exact(const AttentionAnswer& fast, const std::string& name) const;

 private:
  // The largest number of `exact`, or of what it is the difference of.
  double scale_of(const at::Tensor& exact, bool cancels) const;

  const AttentionAnswer reference_;  // float64
  const AttentionAnswer plain_;      // float32
  const bool few_keys_;              // no query has more than two
  const double largest_term_;        // a bound of do . v
};

// max |a - b|; both -inf at the same place counts as equal, NaN as infinite.
double max_error(const at::Tensor& a, const at::Tensor& b);

// The same, bit for bit, NaN included.
bool same_bits(const at::Tensor& a, const at::Tensor& b);
bool same_bits(const AttentionAnswer& a, const AttentionAnswer& b);

}  // namespace reformer
