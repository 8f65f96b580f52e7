#include "cli/bench/data.h"

#include <ATen/Context.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

namespace reformer::cli {
namespace {

at::Tensor normal(at::IntArrayRef shape, const at::Generator& random) {
  return at::randn(shape, random,
                   at::TensorOptions(random.device()).dtype(at::kFloat));
}

at::Tensor clustered(at::IntArrayRef shape, const at::Generator& random) {
  constexpr int64_t kDirections = 16;
  constexpr double kNoise = 0.3;
  const auto centres = normal({kDirections, shape[3]}, random);
  const auto which =
      at::randint(kDirections, {shape[0] * shape[1] * shape[2]}, random,
                  at::TensorOptions(random.device()).dtype(at::kLong));
  auto vectors = normal(shape, random).mul_(kNoise);
  return vectors.add_(centres.index_select(0, which).view(shape));
}

// A copy: the original is the global one.
at::Generator generator(at::Device device, int64_t seed) {
  auto random = at::globalContext().defaultGenerator(device).clone();
  random.set_current_seed(static_cast<uint64_t>(seed));
  return random;
}

}  // namespace

BenchData bench_data(const BenchOptions& options, int64_t length,
                     at::Device device) {
  const auto random = generator(device, options.seed);
  const auto type = options.type_on(device);
  const std::vector<int64_t> shape = {options.batch, options.heads, length,
                                      options.d_head};
  BenchData data;
  data.qk = (options.data == DataKind::kClustered ? clustered(shape, random)
                                                  : normal(shape, random))
                .to(type);
  data.v = normal(shape, random).to(type);
  data.d_output = normal(shape, random).to(type);
  return data;
}

}  // namespace reformer::cli
