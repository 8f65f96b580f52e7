#include "reformer/kernels/lsh_rotations.h"

#include <cuda_bf16.h>

#include "reformer/base/philox.h"
#include "reformer/kernels/cuda/launch.h"
#include "reformer/kernels/cuda/live_step.cuh"

namespace reformer::kernels::cuda {
namespace {

constexpr int kThreads = 128;

__device__ float round_to_bf16(double x) {
  return __bfloat162float(__float2bfloat16_rn(static_cast<float>(x)));
}

// A thread draws four entries of one (head, round) from one Philox call and
// writes each once. Box-Muller in float64, as on the CPU: log, cos and sin of
// two libraries differ by 2 units of 2^-53 at most, and that reaches a bf16
// number only if a rounding to float32 (1 in 2^27) and one to bf16 (1 in 2^16)
// both lie on the border: 1 entry in 2^43, a hash round in 10^8 or fewer.
__global__ void lsh_rotations_kernel(LshRotationsArgs args, int64_t calls) {
  const int64_t entries = args.d_head * args.columns;
  const int64_t calls_per_row = (entries + 3) / 4;
  const int64_t call = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (call >= calls) return;
  const PhiloxKey key = rotation_key(live(args.key));
  const int64_t row = call / calls_per_row;  // of (head, round)
  const auto in_row = static_cast<uint32_t>(call % calls_per_row);
  const auto bits =
      philox(key, {in_row, static_cast<uint32_t>(row % args.rounds),
                   static_cast<uint32_t>(row / args.rounds), 0});
  float* out = args.rotations + row * entries;
  for (int e = 0; e < 4; e += 2) {
    const double radius = sqrt(-2.0 * log(uniform(bits[e])));
    const double angle = 2.0 * 3.14159265358979323846 * uniform(bits[e + 1]);
    const int64_t at = int64_t{in_row} * 4 + e;
    if (at < entries) out[at] = round_to_bf16(radius * cos(angle));
    if (at + 1 < entries) out[at + 1] = round_to_bf16(radius * sin(angle));
  }
}

}  // namespace

void lsh_rotations(const LshRotationsArgs& args, void* stream) {
  const int64_t calls =
      args.heads * args.rounds * ceil_div(args.d_head * args.columns, 4);
  lsh_rotations_kernel<<<grid_for(calls, kThreads, "lsh_rotations"), kThreads,
                         0, stream_of(stream)>>>(args, calls);
  check_launch("lsh_rotations");
}

}  // namespace reformer::kernels::cuda
