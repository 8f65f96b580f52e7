// Tensors that travel together between host and device.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace reformer {

// The tensors keep their identity, whoever holds them, and change their place:
// here they lie one after the other in one piece of memory, which one copy
// moves.
class TensorGroup {
 public:
  TensorGroup() = default;
  explicit TensorGroup(std::vector<at::Tensor> tensors);

  int64_t numel() const { return numel_; }  // of the piece, with gaps

  // The tensors become views of `piece`, one-dimensional, of any device, at
  // least numel() long. Their numbers do not travel.
  void lie_in(const at::Tensor& piece);

  // Views of `piece`, shaped as the tensors.
  std::vector<at::Tensor> views_of(const at::Tensor& piece) const;

  const std::vector<at::Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<at::Tensor> tensors_;
  std::vector<int64_t> begin_;
  int64_t numel_ = 0;
};

}  // namespace reformer
