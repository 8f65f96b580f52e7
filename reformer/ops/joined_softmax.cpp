#include "reformer/ops/joined_softmax.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/where.h>

#include <limits>

namespace reformer {

void JoinedSoftmax::add(const AttentionResult& result) {
  const auto output = result.output.to(result.lse.scalar_type());
  if (!output_.defined()) {
    output_ = output;
    lse_ = result.lse;
    return;
  }
  const auto both = at::logaddexp(lse_, result.lse);
  const auto joined =
      at::lerp(output_, output, at::exp(result.lse - both).unsqueeze(-1));
  // What is no number in the row of who sees nobody must not reach the sum.
  const auto nobody = [](const at::Tensor& lse) {
    return (lse == -std::numeric_limits<double>::infinity()).unsqueeze(-1);
  };
  output_ = at::where(nobody(result.lse), output_,
                      at::where(nobody(lse_), output, joined));
  lse_ = both;
}

}  // namespace reformer
