#include "reformer/optim/tensor_group.h"

#include <ATen/core/grad_mode.h>

namespace reformer {
namespace {

constexpr int64_t kAligned = 64;  // numbers: kernels want 16 bytes and more

}  // namespace

TensorGroup::TensorGroup(std::vector<at::Tensor> tensors)
    : tensors_(std::move(tensors)) {
  for (const auto& tensor : tensors_) {
    begin_.push_back(numel_);
    numel_ += (tensor.numel() + kAligned - 1) / kAligned * kAligned;
  }
}

std::vector<at::Tensor> TensorGroup::views_of(const at::Tensor& piece) const {
  std::vector<at::Tensor> views;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    views.push_back(piece.narrow(0, begin_[i], tensors_[i].numel())
                        .view(tensors_[i].sizes()));
  }
  return views;
}

void TensorGroup::lie_in(const at::Tensor& piece) {
  const at::NoGradGuard no_grad;
  const auto views = views_of(piece);
  for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].set_data(views[i]);
}

}  // namespace reformer
