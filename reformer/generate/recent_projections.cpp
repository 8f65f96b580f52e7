#include "reformer/generate/recent_projections.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "reformer/ops/short_convolution.h"

namespace reformer {

RecentProjections::RecentProjections(const AttentionLayer& layer, int64_t batch,
                                     const Placement& placement)
    : rows_(batch) {
  for (const auto& filter : layer.filters()) {
    filters_.push_back(filter.detach());
    recent_.push_back(at::zeros(
        {batch, layer.heads(), filter.size(0), layer.d_head()},
        at::TensorOptions(placement.device).dtype(placement.compute)));
  }
}

void RecentProjections::read(const Projected& projected,
                             const std::vector<int64_t>& counts) {
  const at::Tensor* all[] = {&projected.q, &projected.v, &projected.k};
  for (std::size_t i = 0; i < recent_.size(); ++i) {
    const int64_t taps = recent_[i].size(2);
    for (std::size_t row = 0; row < counts.size(); ++row) {
      const auto at = static_cast<int64_t>(row);
      const int64_t known = std::min(taps, counts[row]);
      const auto last =
          all[i]->select(0, at).narrow(1, counts[row] - known, known);
      recent_[i].select(0, at).narrow(1, 0, known).copy_(last.flip(1));
    }
  }
}

Projected RecentProjections::next(const Projected& projected) const {
  if (filters_.empty()) return projected;
  const auto& [q, k, v] = projected;
  const auto convolved = [&](const at::Tensor& x, std::size_t i) {
    return next_convolution(x, filters_[i], of_rows(recent_[i]));
  };
  return {convolved(q, 0), k.defined() ? convolved(k, 2) : k, convolved(v, 1)};
}

void RecentProjections::use_rows(int64_t rows) { rows_ = rows; }

void RecentProjections::take_row(int64_t row, const RecentProjections& one) {
  for (std::size_t i = 0; i < recent_.size(); ++i) {
    recent_[i].select(0, row).copy_(one.recent_[i].select(0, 0));
  }
}

void RecentProjections::move_row(int64_t from, int64_t to) {
  if (from == to) return;
  for (auto& recent : recent_) {
    recent.select(0, to).copy_(recent.select(0, from));
  }
  clear_row(from);
}

void RecentProjections::clear_row(int64_t row) {
  for (auto& recent : recent_) recent.select(0, row).zero_();
}

}  // namespace reformer
