#include "reformer/kernels/lsh_intervals.h"

#include "reformer/kernels/cuda/launch.h"
#include "reformer/kernels/cuda/lsh_window.cuh"

namespace reformer::kernels::cuda {
namespace {

constexpr const char* kName = "lsh_intervals";
constexpr int kThreads = 256;

// A thread writes the interval of one position in one round: side by side with
// its neighbours, as it reads their places. The starts of a head's buckets stay
// in the first-level cache.
__global__ __launch_bounds__(kThreads) void lsh_intervals_kernel(
    LshIntervalsArgs args, const __grid_constant__ WindowRules rules,
    unsigned blocks) {
  const int64_t head = blockIdx.x / blocks;  // of all heads
  const auto rounds = static_cast<unsigned>(args.rounds);
  const auto at =
      static_cast<unsigned>(blockIdx.x % blocks * kThreads) + threadIdx.x;
  if (at >= args.length * rounds) return;
  const unsigned i = at / rounds;
  const unsigned round = at % rounds;
  const int64_t first = head * args.length * rounds;
  const int32_t s = args.place[first + at];
  const int32_t* starts =
      args.starts + (head * rounds + round) * (args.n_buckets + 1);
  int2 interval{s, s};
  if (s < starts[args.n_buckets]) {
    const int64_t natural = args.natural_rounds;
    int bucket = 0;
    if (round >= natural) {
      const int64_t row = head * (rounds - natural) + round - natural;
      bucket = min(int{args.buckets[row * args.length + i]},
                   static_cast<int>(args.n_buckets) - 1);
    }
    interval =
        interval_at(s, starts[bucket], starts[bucket + 1], rules.length[round],
                    rules.chunk[round], args.causal);
  }
  reinterpret_cast<int2*>(args.interval)[first + at] = interval;
}

}  // namespace

void lsh_intervals(const LshIntervalsArgs& args, void* stream) {
  require(args.rounds <= kMaxRounds, kName, ": at most ", kMaxRounds,
          " rounds on CUDA, got ", args.rounds);
  const int64_t places = args.length * args.rounds;  // of one head
  require(places <= INT32_MAX, kName, ": length times rounds must be at most ",
          INT32_MAX, " on CUDA, got ", places);
  const WindowRules rules = window_rules(args);
  const int64_t blocks = ceil_div(places, kThreads);
  lsh_intervals_kernel<<<grid_for(args.batch * args.heads * blocks, 1, kName),
                         kThreads, 0, stream_of(stream)>>>(
      args, rules, static_cast<unsigned>(blocks));
  check_launch(kName);
}

}  // namespace reformer::kernels::cuda
