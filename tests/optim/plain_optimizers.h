// The optimizers in plain arithmetic, written from the papers' formulas: the
// references that tolerance the fast ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace reformer {

class PlainOptimizer {
 public:
  virtual ~PlainOptimizer() = default;
  virtual void step(std::vector<double>& w, const std::vector<double>& g,
                    double rate) = 0;
};

using PlainFactory = std::function<std::unique_ptr<PlainOptimizer>(
    const std::vector<int64_t>& sizes)>;

std::unique_ptr<PlainOptimizer> plain_adafactor(
    const std::vector<int64_t>& sizes);
std::unique_ptr<PlainOptimizer> plain_adam(double beta1, double beta2,
                                           double decay);

// Of a matrix of a block.
std::unique_ptr<PlainOptimizer> plain_muon(const std::vector<int64_t>& sizes,
                                           double momentum, double decay);

}  // namespace reformer
