// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019).
#pragma once

#include <vector>

#include "reformer/optim/optimizer.h"

namespace reformer {

// m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, both from 0;
// w = (1 - rate * decay) w - rate * m' / (sqrt(v') + epsilon), where
// m' = m / (1 - b1^t) and v' = v / (1 - b2^t).
//
// `decay` is AdamW's, 0 for Adam. It applies to parameters of rank >= 2:
// matrices and tables, not biases nor the scales of layer norm, which have no
// reason to be small.
struct AdamSettings {
  double beta1;
  double beta2;
  double epsilon;
  double decay;
};

class Adam : public Optimizer {
 public:
  Adam(const AdamSettings& settings, const std::vector<Parameter>& parameters);

  void begin_step() override { ++steps_; }
  void update(std::vector<Parameter>& parameters,
              double learning_rate) override;
  std::vector<NamedTensor> state() const override;
  void load_state(const std::vector<NamedTensor>& state) override;

  // For an optimizer that leaves some parameters to this one.
  const std::vector<NamedTensor>& moments() const { return moments_; }
  int64_t steps() const { return steps_; }
  void count_from(int64_t steps) { steps_ = steps; }

 private:
  void update_on_device(const std::vector<Parameter>& parameters,
                        double learning_rate);

  AdamSettings settings_;
  std::vector<NamedTensor> moments_;  // two a parameter: first, second
  int64_t steps_ = 0;
};

}  // namespace reformer
