#include "reformer/train/captured_gradients.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "reformer/device/device.h"

namespace reformer {
namespace {

at::Tensor like_on(const at::Tensor& x, at::Device device) {
  if (!x.defined()) return x;
  return at::empty_like(x, x.options().device(device).pinned_memory(false));
}

Batch like_on(const Batch& batch, at::Device device) {
  return {like_on(batch.tokens, device), like_on(batch.loss_mask, device),
          /*distances=*/{}, like_on(batch.source, device),
          like_on(batch.source_mask, device)};
}

bool same_sizes(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || a.sizes() == b.sizes());
}

void copy_if_defined(const at::Tensor& to, const at::Tensor& from) {
  if (to.defined()) copy_into(to, from);
}

}  // namespace

CapturedGradients::CapturedGradients(SequenceModel& model,
                                     const WeighedBatch& like,
                                     const Compute& compute)
    : model_(model),
      input_(like_on(like.batch, model.placement().device)),
      scale_(like.scale),
      first_example_(like.first_example),
      step_(at::empty({1}, input_.tokens.options())),
      graph_(model.placement().device) {
  Pass pass{static_cast<uint64_t>(model.config().train.seed), /*step=*/0,
            /*training=*/true, /*rounds=*/0};
  pass.step_on_device =
      reinterpret_cast<const uint64_t*>(step_.const_data_ptr<int64_t>());
  graph_.capture([&] {
    result_ = compute({input_, scale_, first_example_}, pass);
    for (const auto& parameter : model_.parameters()) {
      gradients_.push_back(parameter.gradient());
    }
  });
}

bool CapturedGradients::fits(const WeighedBatch& batch) const {
  return batch.scale == scale_ && batch.first_example == first_example_ &&
         same_sizes(batch.batch.tokens, input_.tokens) &&
         same_sizes(batch.batch.source, input_.source) &&
         same_sizes(batch.batch.source_mask, input_.source_mask);
}

at::Tensor CapturedGradients::replay(const WeighedBatch& batch,
                                     const Pass& pass) {
  copy_into(input_.tokens, batch.batch.tokens);
  copy_into(input_.loss_mask, batch.batch.loss_mask);
  copy_if_defined(input_.source, batch.batch.source);
  copy_if_defined(input_.source_mask, batch.batch.source_mask);
  step_.fill_(static_cast<int64_t>(pass.step));
  graph_.replay();
  auto& parameters = model_.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].gradient() = gradients_[i];
  }
  return result_;
}

}  // namespace reformer
