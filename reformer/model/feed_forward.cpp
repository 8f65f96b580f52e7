#include "reformer/model/feed_forward.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>

#include <algorithm>

#include "reformer/model/parts.h"
#include "reformer/ops/counter_dropout.h"
#include "reformer/ops/layer_norm.h"
#include "reformer/ops/row_products.h"

namespace reformer {

int64_t feed_forward_chunk(const ModelConfig& model, int64_t batch,
                           at::DeviceType device) {
  if (model.feed_forward_chunk > 0) return model.feed_forward_chunk;
  return std::max<int64_t>(64, part_numbers(device) / (model.d_ff * batch));
}

FeedForward::FeedForward(const Config& config, int64_t layer,
                         ParameterStore& store)
    : layer_(layer),
      model_(config.model),
      gelu_(config.model.activation == "gelu"),
      dropout_(config.model.dropout),
      placement_(store.placement()) {
  const std::string name = "blocks." + std::to_string(layer) + ".feed_forward.";
  const int64_t d_model = config.model.d_model;
  const int64_t d_ff = config.model.d_ff;
  norm_weight_ = store.constant(name + "norm.weight", {d_model}, 1);
  norm_bias_ = store.constant(name + "norm.bias", {d_model}, 0);
  in_weight_ = store.glorot(name + "in.weight", d_ff, d_model);
  in_bias_ = store.constant(name + "in.bias", {d_ff}, 0);
  out_weight_ = store.glorot(name + "out.weight", d_model, d_ff);
  out_bias_ = store.constant(name + "out.bias", {d_model}, 0);
}

int64_t FeedForward::chunk(int64_t batch) const {
  return feed_forward_chunk(model_, batch, placement_.device.type());
}

at::Tensor FeedForward::forward(const at::Tensor& x, const Pass& pass,
                                int64_t first_position) const {
  const auto cast = [&](const at::Tensor& w) {
    return w.to(placement_.compute);
  };
  const auto normed =
      layer_norm(x, norm_weight_, norm_bias_, placement_.compute);
  const auto inner =  // [batch, part, d_ff]
      at::linear(normed, cast(in_weight_), cast(in_bias_));
  const auto active = gelu_ ? at::gelu(inner, "tanh") : at::relu(inner);
  return counter_dropout(
      at::linear(active, cast(out_weight_), cast(out_bias_)),
      pass.training ? dropout_ : 0.0,
      {pass.seed, pass.step, static_cast<uint32_t>(2 * layer_ + 1),
       pass.step_on_device},
      first_position);
}

void FeedForward::add_to(const at::Tensor& y, const at::Tensor& x) const {
  const auto active =  // [batch, part, d_ff]
      normed_products(x, {norm_weight_, norm_bias_}, {{in_weight_, in_bias_}},
                      {placement_.compute, placement_.compute},
                      gelu_ ? Activation::kGelu : Activation::kRelu)[0];
  add_product(active, {out_weight_, out_bias_}, y);
}

}  // namespace reformer
