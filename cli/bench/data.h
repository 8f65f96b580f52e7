// What the benchmarks of attention work on.
#pragma once

#include <ATen/core/Tensor.h>

#include "cli/bench/options.h"

namespace reformer::cli {

// All [batch, heads, length, d_head], of one type and device.
struct BenchData {
  at::Tensor qk;
  at::Tensor v;         // iid normal
  at::Tensor d_output;  // iid normal
};

// A function of the options' sizes, data and seed, and of the length. `qk` is
// iid normal, or under `clustered` one of 16 normal vectors for each position
// plus noise of 0.3 of their size: few directions, so that buckets overflow.
// Drawn on the device, in float32 first. LibTorch's global random generators
// are not touched.
BenchData bench_data(const BenchOptions& options, int64_t length,
                     at::Device device = at::kCPU);

}  // namespace reformer::cli
