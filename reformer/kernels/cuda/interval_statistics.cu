// Plain counting, for reports: a thread a query, a tile or a place, sums by
// atomic additions of integers, which are the same in any order.
#include "reformer/kernels/interval_statistics.h"

#include "reformer/kernels/cuda/launch.h"

namespace reformer::kernels::cuda {
namespace {

constexpr const char* kName = "interval_statistics";
constexpr int kThreads = 256;

// One (batch, head).
struct Head {
  const int32_t* order;
  const int32_t* place;
  const int32_t* interval;
  const uint16_t* buckets;  // [bucket_rounds, length]
  const bool* mask;
  int64_t rounds;

  __device__ Head(const IntervalStatisticsArgs& args, int64_t index) {
    const int64_t batch = index / args.heads;
    const int64_t head = index % args.heads;
    const RoundsView& view = args.rounds;
    order = view.order + batch * view.order_batch_stride +
            head * view.order_head_stride;
    place = view.place + batch * view.place_batch_stride +
            head * view.place_head_stride;
    interval = view.interval + batch * view.interval_batch_stride +
               head * view.interval_head_stride;
    buckets = args.buckets + index * args.bucket_rounds * args.length;
    mask = args.mask ? args.mask + batch * args.length : nullptr;
    rounds = view.rounds;
  }

  __device__ bool real(int64_t i) const { return !mask || mask[i]; }
  __device__ int64_t begin(int64_t i, int64_t round) const {
    return interval[(i * rounds + round) * 2];
  }
  __device__ int64_t end(int64_t i, int64_t round) const {
    return interval[(i * rounds + round) * 2 + 1];
  }
  __device__ bool met_before(int64_t i, int64_t j, int64_t round) const {
    for (int64_t r = 0; r < round; ++r) {
      const int64_t s = place[j * rounds + r];
      if (begin(i, r) <= s && s < end(i, r)) return true;
    }
    return false;
  }
};

__device__ void add(int64_t& sum, int64_t own) {
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    own += __shfl_xor_sync(0xffffffffu, own, lanes);
  }
  if (threadIdx.x % 32 == 0 && own != 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(&sum),
              static_cast<unsigned long long>(own));
  }
}

__device__ int64_t own_index() {
  return blockIdx.x * int64_t{kThreads} + threadIdx.x;
}

// A thread a query of a head.
__global__ void count_attended(IntervalStatisticsArgs args, int64_t count,
                               IntervalStatistics* sums) {
  int64_t queries = 0;
  int64_t intervals = 0;
  int64_t attended = 0;
  if (own_index() < count) {
    const Head head(args, own_index() / args.length);
    const int64_t i = own_index() % args.length;
    queries = head.real(i);
    for (int64_t round = 0; round < head.rounds; ++round) {
      const int64_t end = head.end(i, round);
      for (int64_t s = head.begin(i, round); s < end; ++s) {
        const int64_t j = head.order[round * args.length + s];
        if (j == i) continue;
        ++intervals;
        attended += !head.met_before(i, j, round);
      }
    }
  }
  add(sums->queries, queries);
  add(sums->intervals, intervals);
  add(sums->attended, attended);
}

// A thread a tile of one round of a head.
__global__ void count_computed(IntervalStatisticsArgs args, int64_t tiles,
                               int64_t count, IntervalStatistics* sums) {
  int64_t computed = 0;
  if (own_index() < count) {
    const int64_t round = own_index() / tiles % args.rounds.rounds;
    const Head head(args, own_index() / tiles / args.rounds.rounds);
    const int64_t s = own_index() % tiles * args.tile_rows;
    const int64_t stop = min(s + args.tile_rows, args.length);
    int64_t first = args.length;
    int64_t last = 0;
    for (int64_t at = s; at < stop; ++at) {
      const int64_t i = head.order[round * args.length + at];
      if (head.begin(i, round) >= head.end(i, round)) continue;
      first = min(first, head.begin(i, round));
      last = max(last, head.end(i, round));
    }
    computed = max(int64_t{0}, last - first) * (stop - s);
  }
  add(sums->computed, computed);
}

// A thread a place of one hash round of a head. The first of a bucket finds
// its end by bisection and counts its pairs.
__global__ void count_overflow(IntervalStatisticsArgs args, int64_t count,
                               IntervalStatistics* sums) {
  int64_t in_bucket = 0;
  int64_t in_window = 0;
  const int64_t s = own_index() % args.length;
  const int64_t hash_round = own_index() / args.length % args.bucket_rounds;
  if (own_index() < count) {
    const Head head(args, own_index() / args.length / args.bucket_rounds);
    const int64_t round = head.rounds - args.bucket_rounds + hash_round;
    const int32_t* order = head.order + round * args.length;
    const uint16_t* buckets = head.buckets + hash_round * args.length;
    const int64_t i = order[s];
    const auto same = [&](int64_t at) {
      return head.real(order[at]) && buckets[order[at]] == buckets[i];
    };
    if (head.real(i)) {
      const int64_t begin = head.begin(i, round);
      const int64_t end = head.end(i, round);
      in_window = end - begin - (begin <= s && s < end);
      if (s == 0 || !same(s - 1)) {
        int64_t in = s;
        int64_t out = args.length;
        while (out - in > 1) {
          const int64_t middle = (in + out) / 2;
          (same(middle) ? in : out) = middle;
        }
        const int64_t n = out - s;
        in_bucket = args.causal ? n * (n - 1) / 2 : n * (n - 1);
      }
    }
  }
  add(sums->in_bucket, in_bucket);
  add(sums->overflow, in_bucket - in_window);
}

}  // namespace

void interval_statistics(const IntervalStatisticsArgs& args,
                         IntervalStatistics* sums, void* stream) {
  const cudaStream_t own = stream_of(stream);
  check(cudaMemsetAsync(sums, 0, sizeof(IntervalStatistics), own), kName);
  const int64_t heads = args.batch * args.heads;
  const int64_t queries = heads * args.length;
  count_attended<<<grid_for(queries, kThreads, kName), kThreads, 0, own>>>(
      args, queries, sums);
  check_launch(kName);
  const int64_t tiles = ceil_div(args.length, args.tile_rows);
  const int64_t all_tiles = heads * args.rounds.rounds * tiles;
  count_computed<<<grid_for(all_tiles, kThreads, kName), kThreads, 0, own>>>(
      args, tiles, all_tiles, sums);
  check_launch(kName);
  const int64_t places = heads * args.bucket_rounds * args.length;
  if (places == 0) return;
  count_overflow<<<grid_for(places, kThreads, kName), kThreads, 0, own>>>(
      args, places, sums);
  check_launch(kName);
}

}  // namespace reformer::kernels::cuda
