// What tells positions apart.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "reformer/config/config.h"
#include "reformer/model/parameter_store.h"

namespace reformer {

// learned: a table, a row for each of train.length positions, that begins as
// the sinusoids. sinusoid: fixed, of any length. axial: a position's vector is
// the concatenation of a row of each axis' table, by the position's coordinates
// (the last axis runs fastest); any length up to the product of the axes. Its
// tables begin as sinusoids none of which is slower than 1 / its axis' length.
// rotary: nothing here, attention turns its queries and keys.
class Positions {
 public:
  // prefix: of the tables' names.
  Positions(const Config& config, ParameterStore& store,
            const std::string& prefix = "");

  // [length, d_model], of the positions from `first` on; differentiable in the
  // tables; undefined where there is nothing to add. Throws Error beyond the
  // last position.
  at::Tensor encode(int64_t first, int64_t length) const;

  // [n, d_model] of positions [n] int64 on the model's device, which are not
  // looked at: the caller calls require_within.
  at::Tensor encode(const at::Tensor& positions) const;

  // Adds the gradients of the tables: d [length, d_model], what the vectors of
  // the positions from `first` on get.
  void add_gradients(const at::Tensor& d, int64_t first = 0) const;

  // Throws Error unless there are so many positions.
  void require_within(int64_t count) const;

  // How many positions there are; as many as a kernel can count where no table
  // tells them apart.
  int64_t limit() const;

 private:
  at::Tensor coordinate(const at::Tensor& positions, std::size_t axis) const;

  PositionKind kind_;
  int64_t d_model_;
  Placement placement_;
  std::vector<int64_t> shape_;      // axial: the axes' lengths
  std::vector<at::Tensor> tables_;  // [axis length, axis width]
  at::Tensor rates_;                // sinusoid: of each pair of columns
};

inline constexpr double kSlowest = 10000;

// Row p: sin and cos of p / slowest^(2i / width), [length, width] float64.
at::Tensor sinusoids(int64_t first, int64_t length, int64_t width,
                     double slowest = kSlowest);

}  // namespace reformer
