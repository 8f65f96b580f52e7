#include "reformer/model/feed_forward.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "reformer/model/parameter_gradients.h"
#include "reformer/model/parts.h"
#include "reformer/model/sequence_exchange.h"
#include "reformer/ops/activation_gradient.h"
#include "reformer/ops/linear.h"

namespace reformer {
namespace {

Activation activation_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kRelu:
      return Activation::kRelu;
    case ActivationKind::kGelu:
      return Activation::kGelu;
    case ActivationKind::kGeluErf:
      return Activation::kGeluErf;
    case ActivationKind::kReluSquared:
      break;
  }
  return Activation::kReluSquared;
}

}  // namespace

int64_t feed_forward_chunk(const ModelConfig& model, int64_t batch,
                           at::DeviceType device, int64_t sharing) {
  if (model.feed_forward_chunk > 0) return model.feed_forward_chunk;
  return std::max<int64_t>(
      64, part_elements(device) / (model.d_ff * batch * sharing));
}

FeedForward::FeedForward(const Config& config, const std::string& name,
                         uint32_t branch, ParameterStore& store)
    : branch_(branch),
      model_(config.model),
      activation_(activation_of(config.model.activation)),
      dropout_(config.model.dropout),
      placement_(store.placement()) {
  const int64_t d_model = config.model.d_model;
  const int64_t d_ff = config.model.d_ff;
  norm_ = {store.constant(name + "norm.weight", {d_model}, 1),
           store.constant(name + "norm.bias", {d_model}, 0),
           config.model.norm_epsilon};
  in_weight_ = store.glorot(name + "in.weight", d_ff, d_model);
  in_bias_ = store.constant(name + "in.bias", {d_ff}, 0);
  out_weight_ = store.glorot(name + "out.weight", d_model, d_ff);
  out_bias_ = store.constant(name + "out.bias", {d_model}, 0);
}

int64_t FeedForward::chunk(int64_t batch) const {
  return feed_forward_chunk(model_, batch, placement_.device.type(),
                            sharing_ranks(placement_.sequence));
}

at::Tensor FeedForward::output(const at::Tensor& active,
                               const LinearWeights& out, const Pass& pass,
                               int64_t first_position) const {
  return counter_dropout(linear(active, out), dropout(pass, first_position));
}

FeedForward::Matrices FeedForward::rounded() const {
  const auto cast = [&](const at::Tensor& w) {
    return w.to(placement_.compute);
  };
  return {{cast(in_weight_), cast(in_bias_)},
          {cast(out_weight_), cast(out_bias_)}};
}

at::Tensor FeedForward::forward(const at::Tensor& x, const Pass& pass,
                                int64_t first_position) const {
  const auto [in, out] = rounded();
  const auto normed = layer_norm(x, norm_, placement_.compute);
  const auto inner = at::linear(normed, in.weight, in.bias);
  return output(activated(inner, activation_), out, pass, first_position);
}

void FeedForward::add_to(const at::Tensor& y, const at::Tensor& x) const {
  const auto active =  // [batch, part, d_ff]
      norm_linear(x, norm_, {{in_weight_, in_bias_}},
                  {placement_.compute, placement_.compute}, activation_)[0];
  add_linear(active, {out_weight_, out_bias_}, y);
}

// Dropout tells sequences apart. Without it their positions may be those of one
// sequence, any part of which is contiguous.
at::Tensor FeedForward::flat(const at::Tensor& x, const Pass& pass) const {
  return drops(pass) ? x : x.view({1, -1, x.size(2)});
}

// Calls body(at, n) for parts of the length of flat(x).
template <class Body>
void FeedForward::for_each_flat_part(const at::Tensor& x, const Pass& pass,
                                     const Body& body) const {
  const int64_t together = drops(pass) ? 1 : x.size(0);
  for_each_part(x.size(1) * together, chunk(x.size(0)) * together, body);
}

void FeedForward::add_to(const at::Tensor& y, const at::Tensor& x,
                         const Pass& pass, double scale) const {
  const auto matrices = rounded();
  for_each_flat_part(x, pass, [&](int64_t at, int64_t n) {
    const auto normed =
        layer_norm(flat(x, pass).narrow(1, at, n), norm_, placement_.compute);
    const auto active =  // [batch, n, d_ff]
        linear(normed, matrices.in, activation_);
    flat(y, pass).narrow(1, at, n).add_(output(active, matrices.out, pass, at),
                                        scale);
  });
}

EvaluatedFeedForward FeedForward::evaluate(const at::Tensor& x,
                                           const LinearWeights& in) const {
  EvaluatedFeedForward part;
  part.normed = layer_norm_forward(x, norm_, placement_.compute);
  if (keeps_result(activation_)) {
    part.active = linear(part.normed.y, in, activation_);
  } else {
    part.inner = linear(part.normed.y, in);
    part.active = activated(part.inner, activation_);
  }
  return part;
}

at::Tensor FeedForward::evaluate_and_add(
    const at::Tensor& sum, const at::Tensor& x, const Pass& pass,
    std::vector<EvaluatedFeedForward>& parts) const {
  const auto matrices = rounded();
  const auto y = at::empty_like(sum);
  for_each_flat_part(x, pass, [&](int64_t at, int64_t n) {
    const auto part_of = [&](const at::Tensor& all) {
      return flat(all, pass).narrow(1, at, n);
    };
    parts.push_back(evaluate(part_of(x), matrices.in));
    add_dropped(part_of(y), part_of(sum),
                linear(parts.back().active, matrices.out), dropout(pass, at));
  });
  return y;
}

void FeedForward::add_gradients(std::vector<EvaluatedFeedForward> parts,
                                const at::Tensor& d_y, const at::Tensor& d_x,
                                const Pass& pass) const {
  const auto matrices = rounded();
  auto part = parts.begin();
  for_each_flat_part(d_y, pass, [&](int64_t at, int64_t n) {
    add_part_gradients(std::move(*part++), flat(d_y, pass).narrow(1, at, n),
                       flat(d_x, pass).narrow(1, at, n), matrices, pass, at);
  });
}

void FeedForward::reverse(const ReversibleBranch& branch,
                          const Pass& pass) const {
  const auto matrices = rounded();
  const ReversibleBranch all{flat(branch.y, pass), flat(branch.x, pass),
                             flat(branch.d_y, pass), flat(branch.d_x, pass)};
  for_each_flat_part(branch.x, pass, [&](int64_t at, int64_t n) {
    const auto [y, x, d_y, d_x] = all.narrow(at, n);
    auto part = evaluate(x, matrices.in);
    y.sub_(output(part.active, matrices.out, pass, at));
    add_part_gradients(std::move(part), d_y, d_x, matrices, pass, at);
  });
}

// At most two tensors of [batch, n, d_ff] at a time.
void FeedForward::add_part_gradients(EvaluatedFeedForward part,
                                     const at::Tensor& d_y,
                                     const at::Tensor& d_x,
                                     const Matrices& matrices, const Pass& pass,
                                     int64_t first_position) const {
  auto& [normed, inner, active] = part;
  const auto& [in, out] = matrices;
  const auto d_output = as_matrix(
      dropped_as(placement_.compute, d_y, dropout(pass, first_position)));
  add_weight_gradient(out_weight_, as_matrix(active), d_output);
  add_bias_gradient(out_bias_, d_output);
  const bool keeps_inner = !keeps_result(activation_);
  if (keeps_inner) active.reset();
  auto d_inner = at::mm(d_output, out.weight);  // [batch * n, d_ff]
  activation_gradient(d_inner, as_matrix(keeps_inner ? inner : active),
                      gradient_sum(in_bias_), activation_);
  add_weight_gradient(in_weight_, as_matrix(normed.y), d_inner);
  add_norm_gradients(normed, norm_, at::mm(d_inner, in.weight).view_as(d_x),
                     d_x);
}

}  // namespace reformer
