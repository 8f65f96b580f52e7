// An attention layer's gradients: what its forward pass keeps for them, and the
// way back.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>

#include <utility>
#include <vector>

#include "reformer/model/attention_layer.h"
#include "reformer/model/parameter_gradients.h"
#include "reformer/ops/autograd.h"
#include "reformer/ops/linear.h"
#include "reformer/ops/matmul.h"

namespace reformer {

void AttentionLayer::add_filter_gradients(
    const std::vector<at::Tensor>& filters) const {
  for (size_t i = 0; i < filters.size(); ++i) {
    own_of_filter(gradient_sum(filters_[i])).add_(filters[i].grad());
  }
}

// Kept where it takes an exchange, else made when it is needed.
at::Tensor AttentionLayer::joined_of(EvaluatedAttention& evaluated) const {
  if (evaluated.joined.defined()) return evaluated.joined;
  const auto joined = joined_heads(evaluated.attended.detach());
  if (exchange_.shares()) evaluated.joined = joined;
  return joined;
}

// Autograd is asked for the gradient of attend alone.
EvaluatedAttention AttentionLayer::evaluate(const at::Tensor& x,
                                            const Pass& pass,
                                            at::Tensor& buckets,
                                            bool keep_normed) const {
  EvaluatedAttention evaluated;
  auto& [normed, rows, filters, attended, joined] = evaluated;
  normed = layer_norm_forward(x, norm_, compute_);
  rows = projected_rows(normed.y, pass);
  for (auto& row : rows) row = leaf(row);
  for (const auto& filter : this->filters()) filters.push_back(leaf(filter));
  if (!keep_normed) normed.y.reset();
  const at::AutoGradMode record(true);
  attended = hash_and_attend(rows, filters, pass, buckets);
  return evaluated;
}

at::Tensor AttentionLayer::evaluate_and_add(
    const at::Tensor& sum, const at::Tensor& x, const Pass& pass,
    at::Tensor& buckets, EvaluatedAttention& evaluated) const {
  evaluated = evaluate(x, pass, buckets, /*keep_normed=*/true);
  if (drops(pass)) {
    const auto y = at::empty_like(sum);
    add_dropped(y, sum, linear(joined_of(evaluated), {output_, {}}),
                dropout(pass));
    return y;
  }
  const auto y = sum.clone();
  add_finished(y, joined_of(evaluated), pass, 1);
  return y;
}

// Returns the gradient of `attended`, of which `joined` was made.
at::Tensor AttentionLayer::finish_backward(at::Tensor joined,
                                           const at::Tensor& d_y,
                                           const Pass& pass) const {
  const auto d_output = as_matrix(dropped_as(compute_, d_y, dropout(pass)));
  add_weight_gradient(output_, as_matrix(joined), d_output);
  joined.reset();
  return split_heads(
      exchange_.by_heads(at::mm(d_output, output_.to(compute_))
                             .view({d_y.size(0), d_y.size(1), -1})));
}

void AttentionLayer::add_gradients(EvaluatedAttention evaluated,
                                   const at::Tensor& d_y, const at::Tensor& d_x,
                                   const Pass& pass) const {
  auto& [normed, rows, filters, attended, joined] = evaluated;
  auto kept = joined_of(evaluated);
  joined.reset();
  auto d_attended = finish_backward(std::move(kept), d_y, pass);
  backward_from(std::move(attended), d_attended);
  d_attended.reset();
  add_filter_gradients(filters);
  for (auto& row : rows) {  // gradients from here on
    auto d_row = row.grad();
    row.reset();
    row = as_matrix(exchange_.by_positions(std::move(d_row)));
  }
  if (!normed.y.defined()) {
    normed = layer_norm_forward(normed.x, norm_, compute_);
  }
  const auto parameters = projections();
  at::Tensor d_normed;  // [batch * length, d_model]
  for (size_t i = 0; i < parameters.size(); ++i) {
    add_weight_gradient(parameters[i],
                        as_matrix(projected_from(i, normed.y, pass)), rows[i]);
    const auto matrix = parameters[i].to(compute_);
    if (i == 0) {
      d_normed = at::mm(rows[i], matrix);
    } else {
      add_matmul(reads_source() ? as_matrix(pass.source.gradient) : d_normed,
                 rows[i], matrix);
    }
  }
  rows.clear();
  add_norm_gradients(normed, norm_, d_normed.view_as(d_x), d_x);
}

// What matmuls need goes before attention takes its memory; the normed rows
// are made once more after it.
void AttentionLayer::reverse(const ReversibleBranch& branch, const Pass& pass,
                             at::Tensor buckets) const {
  auto evaluated = evaluate(branch.x, pass, buckets, /*keep_normed=*/false);
  add_finished(branch.y, joined_of(evaluated), pass, -1);
  add_gradients(std::move(evaluated), branch.d_y, branch.d_x, pass);
}

}  // namespace reformer
