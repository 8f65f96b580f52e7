#include "reformer/model/streams.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>

namespace reformer {

int64_t joined_width(int64_t d_model, Join join) {
  return join == Join::kConcat ? 2 * d_model : d_model;
}

at::Tensor joined(const Streams& y, Join join) {
  if (join == Join::kFirst) return y.x1;
  if (join == Join::kConcat) return at::cat({y.x1, y.x2}, 2);
  return at::add(y.x1, y.x2).mul_(0.5);
}

void split_gradient(const at::Tensor& d, Join join, const Streams& d_y) {
  const int64_t width = d_y.x1.size(2);
  if (join == Join::kMean) {
    d_y.x1.copy_(d).mul_(0.5);
    d_y.x2.copy_(d_y.x1);
    return;
  }
  d_y.x1.copy_(d.narrow(2, 0, width));
  if (join == Join::kConcat) d_y.x2.copy_(d.narrow(2, width, width));
}

}  // namespace reformer
