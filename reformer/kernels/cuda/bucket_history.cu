#include "reformer/kernels/bucket_history.h"

#include "reformer/kernels/cuda/launch.h"

namespace reformer::kernels::cuda {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

// A warp owns a round of a (row, head) and takes its positions in order, 32 at
// a time. Lanes of the same bucket take their places by lane; the last of them
// writes the new count, which the next 32 read.
__global__ void fill_bucket_rings_kernel(
    const __grid_constant__ FillBucketHistoryArgs args) {
  const int lane = threadIdx.x;
  const int64_t round = blockIdx.x;  // of all rows' and heads'
  const int64_t row = round / (args.heads * args.history.rounds);
  const int64_t count = args.counts[row];
  const uint16_t* ids = args.buckets + round * args.length;
  const auto& history = args.history;
  for (int64_t first = 0; first < count; first += 32) {
    const int64_t position = first + lane;
    const bool real = position < count;
    const unsigned present = __ballot_sync(kAllLanes, real);
    if (real) {
      const int64_t bucket = history.bucket(round, ids[position]);
      const unsigned peers =
          __match_any_sync(present, static_cast<unsigned long long>(bucket));
      const int before = __popc(peers & ((1u << lane) - 1));
      const int at = history.counts[bucket] + before;
      const bool newest = peers >> lane == 1;
      // Of more members than places only the last stay.
      if (__popc(peers >> lane) <= history.window) {
        history.members[bucket * history.window + at % history.window] =
            static_cast<int32_t>(position);
      }
      __syncwarp(present);
      if (newest) history.counts[bucket] = at + 1;
    }
    __syncwarp();
  }
}

}  // namespace

void fill_bucket_history(const FillBucketHistoryArgs& args, void* stream) {
  constexpr const char* kName = "fill_bucket_history";
  const int64_t rounds = args.batch * args.heads * args.history.rounds;
  fill_bucket_rings_kernel<<<grid_for(rounds, 1, kName), 32, 0,
                             stream_of(stream)>>>(args);
  check_launch(kName);
}

}  // namespace reformer::kernels::cuda
