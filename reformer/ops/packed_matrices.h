// Matrices of a model that will not change, packed once as a CPU's matmuls want
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>

#include "reformer/ops/activation.h"

namespace reformer {

// A matmul packs its matrices every time: of 128 rows that takes a fifth of it.
// While a PackedMatrices::Use exists, `linear` (ops/linear.h) and what is made
// of it take packed copies, by oneDNN, on its thread: of float32 matrices on a
// CPU, without gradients. Each is packed when it is first met, takes its memory
// a second time, and must not change from then on. Results are those of
// LibTorch's but for rounding. Without oneDNN in LibTorch nothing is packed.
class PackedMatrices {
 public:
  //   x        [rows, width] float32
  //   weight   [outputs, width]
  //   bias     [outputs], or undefined
  //   returns  [rows, outputs]: activation(x W^T + bias); undefined where this
  //            is not packed here
  at::Tensor linear(const at::Tensor& x, const at::Tensor& weight,
                    const at::Tensor& bias, bool relu);

  // null: none, whatever was in use before.
  class Use {
   public:
    explicit Use(PackedMatrices* matrices);
    explicit Use(PackedMatrices& matrices) : Use(&matrices) {}
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    PackedMatrices* before_;
  };

  // Those in use on this thread; null: none.
  static PackedMatrices* in_use();

 private:
  struct Packed {
    at::Tensor weight;  // as it was given: nobody else has its address
    at::Tensor packed;
  };
  const at::Tensor& packed(const at::Tensor& weight);

  std::unordered_map<const void*, Packed> matrices_;
};

}  // namespace reformer
