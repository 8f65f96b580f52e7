#include "cli/bench_data.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

namespace reformer::cli {
namespace {

at::Tensor clustered(at::IntArrayRef shape, const at::Generator& random) {
  constexpr int64_t kDirections = 16;
  constexpr double kNoise = 0.3;
  const auto centres = at::randn({kDirections, shape[3]}, random);
  const auto which = at::randint(kDirections, {shape[0] * shape[1] * shape[2]},
                                 random, at::TensorOptions().dtype(at::kLong));
  auto vectors = at::randn(shape, random).mul_(kNoise);
  return vectors.add_(centres.index_select(0, which).view(shape));
}

}  // namespace

BenchData bench_data(const BenchOptions& options, int64_t length) {
  const auto random =
      at::detail::createCPUGenerator(static_cast<uint64_t>(options.seed));
  const std::vector<int64_t> shape = {options.batch, options.heads, length,
                                      options.d_head};
  BenchData data;
  data.qk = options.data == "clustered" ? clustered(shape, random)
                                        : at::randn(shape, random);
  data.v = at::randn(shape, random);
  data.d_output = at::randn(shape, random);
  return data;
}

}  // namespace reformer::cli
