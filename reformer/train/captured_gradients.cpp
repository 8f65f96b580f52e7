#include "reformer/train/captured_gradients.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "reformer/device/device.h"

namespace reformer {
namespace {

at::Tensor like_on(const at::Tensor& x, at::Device device) {
  return at::empty_like(x, x.options().device(device).pinned_memory(false));
}

}  // namespace

CapturedGradients::CapturedGradients(LanguageModel& model,
                                     const WeighedBatch& like,
                                     const Compute& compute)
    : model_(model),
      input_{like_on(like.batch.tokens, model.placement().device),
             like_on(like.batch.loss_mask, model.placement().device)},
      scale_(like.scale),
      step_(at::empty({1}, input_.tokens.options())),
      graph_(model.placement().device) {
  Pass pass{static_cast<uint64_t>(model.config().train.seed), /*step=*/0,
            /*training=*/true, /*rounds=*/0};
  pass.step_on_device =
      reinterpret_cast<const uint64_t*>(step_.const_data_ptr<int64_t>());
  graph_.capture([&] {
    result_ = compute({input_, scale_}, pass);
    for (const auto& parameter : model_.parameters()) {
      gradients_.push_back(parameter.gradient());
    }
  });
}

bool CapturedGradients::fits(const WeighedBatch& batch) const {
  return batch.scale == scale_ &&
         batch.batch.tokens.sizes() == input_.tokens.sizes();
}

at::Tensor CapturedGradients::replay(const WeighedBatch& batch,
                                     const Pass& pass) {
  copy_into(input_.tokens, batch.batch.tokens);
  copy_into(input_.loss_mask, batch.batch.loss_mask);
  step_.fill_(static_cast<int64_t>(pass.step));
  graph_.replay();
  auto& parameters = model_.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].gradient() = gradients_[i];
  }
  return result_;
}

}  // namespace reformer
