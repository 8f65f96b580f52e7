#include "reformer/model/positions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "reformer/core/errors.h"

namespace reformer {

at::Tensor sinusoids(int64_t first, int64_t length, int64_t width,
                     at::Device device) {
  const auto numbers = at::TensorOptions(device).dtype(at::kDouble);
  const auto rate =  // of a pair of columns
      at::arange(0, width, 2, numbers)
          .mul_(-std::log(10000.0) / double(width))
          .exp_();
  const auto angle =
      at::arange(first, first + length, numbers).unsqueeze(1) * rate;
  return at::stack({angle.sin(), angle.cos()}, 2)
      .flatten(1)
      .narrow(1, 0, width);
}

Positions::Positions(const Config& config, ParameterStore& store)
    : kind_(config.model.positions),
      d_model_(config.model.d_model),
      placement_(store.placement()) {
  if (kind_ == "learned") {
    shape_ = {config.train.length};
    tables_ = {store.given("positions.weight",
                           sinusoids(0, config.train.length, d_model_))};
  } else if (kind_ == "axial") {
    shape_ = config.model.axial_shape;
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      tables_.push_back(store.given(
          "positions." + std::to_string(axis) + ".weight",
          sinusoids(0, shape_[axis], config.model.axial_dims[axis])));
    }
  }
}

int64_t Positions::limit() const {
  if (kind_ == "sinusoid") return std::numeric_limits<int32_t>::max();
  return std::accumulate(shape_.begin(), shape_.end(), int64_t{1},
                         std::multiplies<>());
}

at::Tensor Positions::encode(int64_t first, int64_t length) const {
  if (kind_ == "sinusoid") {
    return sinusoids(first, length, d_model_, placement_.device)
        .to(placement_.type);
  }
  const int64_t most = limit();
  require(first + length <= most, "positions: this model has ", most,
          " positions, got ", first + length,
          "; train with a larger train.length or model.axial_shape, or with "
          "sinusoid positions");
  if (shape_.size() == 1) return tables_[0].narrow(0, first, length);
  const auto position = at::arange(
      first, first + length,
      at::TensorOptions().dtype(at::kLong).device(placement_.device));
  std::vector<at::Tensor> parts;
  int64_t below = most;  // positions that share a coordinate of this axis
  for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
    below /= shape_[axis];
    const auto coordinate =
        position.div(below, "floor").remainder(shape_[axis]);
    // Not index_select, whose gradient is summed in any order on a GPU.
    parts.push_back(at::embedding(tables_[axis], coordinate));
  }
  return at::cat(parts, 1);
}

}  // namespace reformer
