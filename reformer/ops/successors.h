// Which position comes after which, for successor values.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/kernels/interval_attention.h"

namespace reformer {

// The first `heads` heads in which a key offers the value of the next real
// position (interval_attention); 0: none.
class Successors {
 public:
  //   mask  [batch, length] bool, true where real; undefined: all are
  Successors(int64_t heads, const at::Tensor& mask);

  // As the kernels see it, no longer than this lives.
  kernels::SuccessorsView view() const;

 private:
  int64_t heads_;
  at::Tensor next_;  // [batch, length] int32; undefined without a mask
  at::Tensor ends_;  // [batch, 2] int32; likewise
};

}  // namespace reformer
