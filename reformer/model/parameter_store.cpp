#include "reformer/model/parameter_store.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <functional>
#include <string_view>

#include "reformer/base/errors.h"
#include "reformer/base/philox.h"

namespace reformer {
namespace {

// FNV-1a: the same on every machine, unlike std::hash.
uint64_t hash_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

using Draw = std::function<double(const PhiloxCounter& bits)>;

at::Tensor drawn(at::IntArrayRef sizes, uint64_t seed, const std::string& name,
                 const Draw& draw) {
  auto values = at::empty(sizes, at::kDouble);
  double* data = values.mutable_data_ptr<double>();
  const uint64_t hash = hash_of(name);
  const PhiloxKey key{static_cast<uint32_t>(seed),
                      static_cast<uint32_t>(seed >> 32)};
  for (int64_t i = 0; i < values.numel(); ++i) {
    data[i] = draw(philox(
        key, {static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32),
              static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32)}));
  }
  return values;
}

}  // namespace

int64_t block_of(const std::string& name) {
  constexpr std::string_view kBlocks = "blocks.";
  if (name.compare(0, kBlocks.size(), kBlocks) != 0) return -1;
  return std::stoll(name.substr(kBlocks.size()));
}

ParameterStore::ParameterStore(uint64_t seed, const Placement& placement)
    : seed_(seed), placement_(placement) {}

at::Tensor ParameterStore::given(const std::string& name,
                                 const at::Tensor& value) {
  return kept(name, value, placement_.type);
}

at::Tensor ParameterStore::kept(const std::string& name,
                                const at::Tensor& value, at::ScalarType type) {
  for (const auto& parameter : parameters_) {
    require(parameter.name != name, "model: two parameters are named ", name);
  }
  const bool on_host = placement_.blocks_on_host && block_of(name) >= 0;
  auto tensor = value
                    .to(on_host ? at::Device(at::kCPU) : placement_.device,
                        type, false, /*copy=*/true)
                    .requires_grad_();
  parameters_.emplace_back(name, tensor);
  return tensor;
}

at::Tensor ParameterStore::constant(const std::string& name,
                                    at::IntArrayRef sizes, double value) {
  return given(name, at::full(sizes, value, at::kDouble));
}

at::Tensor ParameterStore::normal(const std::string& name,
                                  at::IntArrayRef sizes,
                                  double standard_deviation) {
  const auto box_muller = [&](const PhiloxCounter& bits) {
    return standard_deviation * std::sqrt(-2 * std::log(uniform(bits[0]))) *
           std::cos(2 * M_PI * uniform(bits[1]));
  };
  return given(name, drawn(sizes, seed_, name, box_muller));
}

at::Tensor ParameterStore::glorot(const std::string& name, int64_t outputs,
                                  int64_t inputs) {
  const double limit = std::sqrt(6.0 / double(outputs + inputs));
  const auto within = [&](const PhiloxCounter& bits) {
    return limit * (2 * uniform(bits[0]) - 1);
  };
  return kept(name, drawn({outputs, inputs}, seed_, name, within),
              placement_.matrices);
}

}  // namespace reformer
