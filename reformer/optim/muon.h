// Muon (Jordan 2024, kellerjordan.github.io/posts/muon), with the size of step
// and the decay of Liu et al. 2025 (arXiv 2502.16982).
#pragma once

#include <vector>

#include "reformer/optim/adam.h"

namespace reformer {

// For the matrices of the blocks: m = b m + (1 - b) g from 0,
// u = b m + (1 - b) g, and
//   w = (1 - rate * decay) w - rate * 0.2 sqrt(max(rows, columns)) * O(u),
// where O(u) has u's singular vectors, and singular values that are all about
// as large. Its elements are then about as large as Adam's, so the same rates
// and decays serve both. All other parameters are AdamW's.
//
// O is five steps of the iteration X = a X + b (X X') X + c (X X')^2 X: all
// matrices of a block of one shape together, whatever else is updated, so that
// a block's step does not depend on the others.
struct MuonSettings {
  double momentum;
  bool rounded;       // the iteration is in bfloat16 on a GPU
  AdamSettings adam;  // of the rest; its decay is the matrices', too
};

class Muon : public Optimizer {
 public:
  Muon(const MuonSettings& settings, const std::vector<Parameter>& parameters);

  void begin_step() override { adam_.begin_step(); }
  void update(std::vector<Parameter>& parameters,
              double learning_rate) override;
  std::vector<NamedTensor> state() const override;
  void load_state(const std::vector<NamedTensor>& state) override;

 private:
  struct Matrix {
    at::Tensor value;
    at::Tensor gradient;
    at::Tensor momentum;
  };

  std::vector<NamedTensor> moments() const;
  void update_together(const std::vector<Matrix>& matrices,
                       double learning_rate) const;

  MuonSettings settings_;
  std::vector<size_t> matrices_;      // indices of parameters
  std::vector<size_t> others_;        // likewise
  std::vector<NamedTensor> momenta_;  // one a matrix
  Adam adam_;                         // of the others
};

// Matrices [n, rows, columns], rows <= columns, with those singular values that
// are at least 0.3% of their matrix' norm brought to between 0.68 and 1.2; in
// `x`'s type. Overwrites `x`.
at::Tensor orthogonalized(at::Tensor x);

}  // namespace reformer
