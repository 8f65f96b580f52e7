#include "reformer/model/positions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "reformer/base/errors.h"
#include "reformer/model/parameter_gradients.h"
#include "reformer/model/parts.h"
#include "reformer/ops/embedding_gradient.h"

namespace reformer {
namespace {

bool has_tables(PositionKind kind) {
  return kind == PositionKind::kLearned || kind == PositionKind::kAxial;
}

// Of each pair of columns, float64: from 1 down to almost 1 / slowest.
at::Tensor rates_of(int64_t width, double slowest, at::Device device) {
  return at::arange(0, width, 2, at::TensorOptions(device).dtype(at::kDouble))
      .mul_(-std::log(slowest) / double(width))
      .exp_();
}

at::Tensor waves(const at::Tensor& positions, const at::Tensor& rates,
                 int64_t width) {
  const auto angle = positions.unsqueeze(1) * rates;
  return at::stack({angle.sin(), angle.cos()}, 2)
      .flatten(1)
      .narrow(1, 0, width);
}

}  // namespace

at::Tensor sinusoids(int64_t first, int64_t length, int64_t width,
                     double slowest) {
  return waves(at::arange(first, first + length, at::kDouble),
               rates_of(width, slowest, at::kCPU), width);
}

Positions::Positions(const Config& config, ParameterStore& store,
                     const std::string& prefix)
    : kind_(config.model.positions),
      d_model_(config.model.d_model),
      placement_(store.placement()) {
  if (kind_ == PositionKind::kLearned) {
    shape_ = {config.train.length};
    tables_ = {store.given(prefix + "positions.weight",
                           sinusoids(0, config.train.length, d_model_))};
  } else if (kind_ == PositionKind::kAxial) {
    shape_ = config.model.axial_shape;
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      // Slower waves would hardly move along the axis: what all positions have
      // in common blurs attention and sends everything to the same bucket.
      tables_.push_back(
          store.given(prefix + "positions." + std::to_string(axis) + ".weight",
                      sinusoids(0, shape_[axis], config.model.axial_dims[axis],
                                std::min(kSlowest, double(shape_[axis])))));
    }
  } else if (kind_ == PositionKind::kSinusoid) {
    rates_ = rates_of(d_model_, kSlowest, placement_.device);
  }
}

int64_t Positions::limit() const {
  if (!has_tables(kind_)) return std::numeric_limits<int32_t>::max();
  return std::accumulate(shape_.begin(), shape_.end(), int64_t{1},
                         std::multiplies<>());
}

void Positions::require_within(int64_t count) const {
  const int64_t most = limit();
  require(count <= most, "positions: this model has ", most, " positions, got ",
          count,
          "; train with a larger train.length or model.axial_shape, or with "
          "sinusoid or rotary positions");
}

at::Tensor Positions::encode(int64_t first, int64_t length) const {
  require_within(first + length);
  if (kind_ == PositionKind::kRotary) return {};
  if (shape_.size() == 1) return tables_[0].narrow(0, first, length);
  const auto positions = at::arange(
      first, first + length,
      at::TensorOptions().dtype(at::kLong).device(placement_.device));
  if (kind_ != PositionKind::kSinusoid) return encode(positions);
  // In parts: the angles are float64.
  constexpr int64_t kPart = 4096;
  std::vector<at::Tensor> parts;
  for_each_part(length, kPart, [&](int64_t at, int64_t n) {
    parts.push_back(encode(positions.narrow(0, at, n)));
  });
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

at::Tensor Positions::encode(const at::Tensor& positions) const {
  if (kind_ == PositionKind::kRotary) return {};
  if (kind_ == PositionKind::kSinusoid) {
    return waves(positions, rates_, d_model_).to(placement_.type);
  }
  std::vector<at::Tensor> parts;
  for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
    parts.push_back(at::embedding(tables_[axis], coordinate(positions, axis)));
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, 1);
}

at::Tensor Positions::coordinate(const at::Tensor& positions,
                                 std::size_t axis) const {
  if (shape_.size() == 1) return positions;
  const int64_t below =  // positions that share a coordinate of this axis
      std::accumulate(shape_.begin() + std::ptrdiff_t(axis) + 1, shape_.end(),
                      int64_t{1}, std::multiplies<>());
  return positions.div(below, "floor").remainder(shape_[axis]);
}

void Positions::add_gradients(const at::Tensor& d, int64_t first) const {
  if (!has_tables(kind_)) return;
  const int64_t length = d.size(0);
  if (shape_.size() == 1) {
    gradient_sum(tables_[0]).narrow(0, first, length).add_(d);
    return;
  }
  const auto positions = at::arange(
      first, first + length,
      at::TensorOptions().dtype(at::kLong).device(placement_.device));
  int64_t column = 0;
  for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
    const int64_t width = tables_[axis].size(1);
    add_embedding_gradient(gradient_sum(tables_[axis]),
                           coordinate(positions, axis),
                           d.narrow(1, column, width));
    column += width;
  }
}

}  // namespace reformer
