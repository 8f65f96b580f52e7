// Adafactor (Shazeer and Stern 2018) as the Reformer's authors used it.
#pragma once

#include <vector>

#include "reformer/optim/optimizer.h"

namespace reformer {

// Rank >= 2 is a stack of matrices, its last two dimensions; of each only the
// mean of g^2 along the rows, r, and along the columns, c, is kept:
//
//   b = 1 - (t + 1)^-0.8                      t = 0 at the first step
//   r_i = b r_i + (1 - b) mean_j(g_ij^2 + 1e-30), c_j likewise
//   y_ij = g_ij / sqrt(r_i c_j / mean(r))     for a vector g / sqrt(v)
//   w -= rate * max(RMS(w), 1e-3) * y / max(1, RMS(y))
//
// RMS is over the whole parameter, all its matrices. With t counted from 0, as
// the authors' trainer counts, b is 0 at the first step: the moments start as
// the first g^2, need no correction, and RMS(y) is about 1 from the start.
class Adafactor : public Optimizer {
 public:
  explicit Adafactor(const std::vector<Parameter>& parameters);

  void begin_step() override { ++steps_; }
  void update(std::vector<Parameter>& parameters,
              double learning_rate) override;
  std::vector<NamedTensor> state() const override;
  void load_state(const std::vector<NamedTensor>& state) override;

 private:
  std::vector<NamedTensor> moments_;  // of a matrix r and c, of a vector v
  std::vector<size_t> first_moment_;  // where a parameter's begin
  int64_t steps_ = 0;
};

}  // namespace reformer
