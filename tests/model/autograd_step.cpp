#include "tests/model/autograd_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <torch/csrc/autograd/autograd.h>

namespace reformer {

std::vector<at::Tensor> autograd_gradients(const LanguageModel& model,
                                           const at::Tensor& tokens,
                                           const Pass& pass, double scale) {
  const at::AutoGradMode record(true);
  const auto wanted = tokens.to(model.placement().device);
  const auto start =
      at::full({wanted.size(0), 1}, model.start_token(), wanted.options());
  const auto inputs =
      at::cat({start, wanted.narrow(1, 0, wanted.size(1) - 1)}, 1);
  const auto x = model.embed(inputs, 0, inputs.size(1));
  Streams y{x, x};
  for (const auto& block : model.stack().blocks()) {
    at::Tensor buckets;
    const auto add_attention = [&](const at::Tensor& to, const at::Tensor& x) {
      return to + block.attention.forward(x, pass, buckets);
    };
    const auto add_feed_forward = [&](const at::Tensor& to,
                                      const at::Tensor& x) {
      return to + block.feed_forward.forward(x, pass, /*first_position=*/0);
    };
    if (model.stack().two_streams()) {
      y.x1 = add_attention(y.x1, y.x2);
      y.x2 = add_feed_forward(y.x2, y.x1);
    } else {
      y.x1 = add_attention(y.x1, y.x1);
      y.x1 = add_feed_forward(y.x1, y.x1);
    }
  }
  const auto log_p = at::log_softmax(model.head().logits(y).flatten(0, 1), 1);
  const auto loss =
      at::nll_loss(log_p, wanted.flatten(), {}, at::Reduction::Sum);
  std::vector<at::Tensor> values;
  for (const auto& parameter : model.parameters()) {
    values.push_back(parameter.value);
  }
  return torch::autograd::grad({loss * scale}, values);
}

}  // namespace reformer
