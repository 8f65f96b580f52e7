// Makes and keeps a model's parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reformer/model/parameter.h"
#include "reformer/model/placement.h"

namespace reformer {

// Every parameter is drawn from a counter of its own, keyed on (seed, name):
// the same name has the same first value in every model of a seed, and the
// global random generator is never touched.
class ParameterStore {
 public:
  ParameterStore(uint64_t seed, const Placement& placement);

  // Each adds a parameter and returns its tensor, which requires gradients;
  // `glorot` those that inputs are multiplied with.
  at::Tensor constant(const std::string& name, at::IntArrayRef sizes,
                      double value);
  at::Tensor normal(const std::string& name, at::IntArrayRef sizes,
                    double standard_deviation);
  at::Tensor glorot(const std::string& name, int64_t outputs, int64_t inputs);
  at::Tensor given(const std::string& name, const at::Tensor& value);

  const Placement& placement() const { return placement_; }
  std::vector<Parameter>& parameters() { return parameters_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  at::Tensor kept(const std::string& name, const at::Tensor& value,
                  at::ScalarType type);

  uint64_t seed_;
  Placement placement_;
  std::vector<Parameter> parameters_;
};

}  // namespace reformer
