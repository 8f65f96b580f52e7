// A stable counting sort of all rounds of all heads at once. A row (one round
// of one head) is cut into tiles: count the digits of every tile, sum them up
// over each row, then rank every tile's keys and write them to their places.
// Rows of one tile need no counting. Many buckets are sorted in two passes, by
// the lower and then by the upper half of their digits. At last the places of
// all rounds are put side by side, with their intervals.
#include "reformer/kernels/bucket_sort.h"

#include <algorithm>

#include "reformer/kernels/cuda/bucket_sort_rounds.cuh"
#include "reformer/kernels/cuda/launch.h"

namespace reformer::kernels::cuda {
namespace {

constexpr const char* kName = "bucket_sort";
constexpr int kMaxDigits = 2049;  // sorted in one pass: 2048 and the padding
static_assert(kMaxDigits * 4 + kSortWarps * (kMaxDigits + 1) * 2 <=
              kLeastSharedMemory);

// Of the numbers below n.
int bits_of(int64_t n) {
  int bits = 0;
  while ((int64_t{1} << bits) < n) ++bits;
  return bits;
}

// How a sort is laid out, and where its parts lie in the workspace.
struct Plan {
  int64_t rows;
  int64_t tiles;
  int per_thread;
  int passes;
  int bits;            // of the lower digit
  int digits;          // of the larger digit
  int64_t counts = 0;  // offsets in bytes
  int64_t begins = 0;
  int64_t order = 0;
  int64_t place = 0;
  bool carries_keys = false;  // where 16 bits hold them
  int64_t lower_keys = 0;
  int64_t sorted_keys = 0;
  int64_t bytes = 0;

  explicit Plan(const BucketSortArgs& args) {
    rows = args.batch * args.heads * args.rounds;
    // One tile where it can be; else enough tiles to fill a GPU.
    constexpr int64_t kBlocks = 256;
    per_thread = args.length <= kSortThreads * 2   ? 2
                 : args.length <= kSortThreads * 8 ? 8
                                                   : 16;
    while (args.length > kSortThreads * 16 && per_thread > 4 &&
           rows * ceil_div(args.length, kSortThreads * per_thread) < kBlocks) {
      per_thread /= 2;
    }
    tiles = ceil_div(args.length, kSortThreads * per_thread);
    const int64_t keys = args.n_buckets + (args.mask ? 1 : 0);
    bits = bits_of(keys);
    passes = keys <= kMaxDigits ? 1 : 2;
    if (passes == 2) bits /= 2;
    digits = static_cast<int>(
        passes == 1 ? keys : std::max<int64_t>(1 << bits, upper_digits(keys)));
    const auto take = [&](int64_t ints) {
      const int64_t at = bytes;
      bytes += ceil_div(ints * 4, 256) * 256;
      return at;
    };
    if (tiles > 1) counts = take(rows * tiles * digits);
    if (passes == 2) {
      begins = take(rows * digits);
      order = take(rows * args.length);
      carries_keys = keys <= 65536;
      if (carries_keys) {
        lower_keys = take(ceil_div(rows * args.length, 2));
        sorted_keys = take(ceil_div(rows * args.length, 2));
      }
    }
    place = take(rows * args.length);
  }

  int64_t upper_digits(int64_t keys) const { return ((keys - 1) >> bits) + 1; }
};

template <int kPerThread, bool kFirstPass>
void launch(const Pass& pass, const Plan& plan, cudaStream_t stream) {
  constexpr int64_t kTileBytes = kSortThreads * kPerThread * 4;
  const dim3 tiles = grid_for(plan.rows * plan.tiles, 1, kName);
  if (plan.tiles > 1) {
    count_digits<kPerThread, kFirstPass>
        <<<tiles, kSortThreads, pass.digits * sizeof(int), stream>>>(pass);
    check_launch("bucket_sort, counting");
    sum_counts<<<grid_for(plan.rows, 1, kName), kSumThreads, 0, stream>>>(pass);
    check_launch("bucket_sort, summing");
  }
  const int64_t counters = kSortWarps * int64_t{(pass.digits + 1) & ~1} * 2;
  const int64_t bytes = pass.digits * 4 + std::max(counters, kTileBytes);
  allow_shared_memory(place_digits<kPerThread, kFirstPass>, bytes, kName);
  place_digits<kPerThread, kFirstPass>
      <<<tiles, kSortThreads, static_cast<size_t>(bytes), stream>>>(pass);
  check_launch("bucket_sort, placing");
}

template <int kPerThread>
void launch(const Pass& pass, const Plan& plan, cudaStream_t stream) {
  pass.from ? launch<kPerThread, false>(pass, plan, stream)
            : launch<kPerThread, true>(pass, plan, stream);
}

void launch_pass(const Pass& pass, const Plan& plan, cudaStream_t stream) {
  switch (plan.per_thread) {
    case 2:
      return launch<2>(pass, plan, stream);
    case 4:
      return launch<4>(pass, plan, stream);
    case 8:
      return launch<8>(pass, plan, stream);
    default:
      launch<16>(pass, plan, stream);
  }
}

void launch_write_rounds(const BucketSortArgs& args, const int32_t* places,
                         const LshIntervalsArgs* intervals,
                         cudaStream_t stream) {
  constexpr int64_t kElements = 2048;  // of a block
  RoundsBlock block{0, 8, static_cast<int>((1 << 20) / args.rounds + 1)};
  while ((args.rounds << block.log2_positions) > kElements) {
    --block.log2_positions;
  }
  const int64_t positions = 1 << block.log2_positions;
  const int64_t blocks = ceil_div(args.length, positions);
  block.count = static_cast<unsigned>(blocks);
  const int64_t bytes = positions * (args.rounds | 1) * (intervals ? 12 : 4);
  const WindowRules rules =
      intervals ? window_rules(*intervals) : WindowRules{};
  write_rounds<<<grid_for(args.batch * args.heads * blocks, 1, kName),
                 kSortThreads, static_cast<size_t>(bytes), stream>>>(
      args, places, intervals ? intervals->interval : nullptr,
      intervals && intervals->causal, rules, block);
  check_launch("bucket_sort, writing rounds");
}

}  // namespace

int64_t bucket_sort_workspace(const BucketSortArgs& args) {
  return Plan(args).bytes;
}

void bucket_sort(const BucketSortArgs& args, const LshIntervalsArgs* intervals,
                 void* workspace, void* stream) {
  require(args.rounds <= kMaxRounds, kName, ": at most ", kMaxRounds,
          " rounds on CUDA, got ", args.rounds);
  const Plan plan(args);
  const cudaStream_t own = stream_of(stream);
  const auto in_workspace = [&]<class T>(int64_t offset) {
    return reinterpret_cast<T*>(static_cast<char*>(workspace) + offset);
  };
  int32_t* places = in_workspace.operator()<int32_t>(plan.place);
  Pass pass{};
  pass.args = args;
  pass.tiles = static_cast<unsigned>(plan.tiles);
  if (plan.tiles > 1) {
    pass.counts = in_workspace.operator()<int32_t>(plan.counts);
  }
  pass.place = places;
  pass.order = args.order;
  pass.bits = plan.bits;
  pass.digits = plan.digits;
  if (plan.passes == 1) {
    pass.begins = args.starts;
    pass.begins_stride = args.n_buckets + 1;
    launch_pass(pass, plan, own);
  } else {
    const int64_t keys = args.n_buckets + (args.mask ? 1 : 0);
    pass.begins = in_workspace.operator()<int32_t>(plan.begins);
    pass.begins_stride = plan.digits;
    Pass lower = pass;
    lower.place = nullptr;
    lower.order = in_workspace.operator()<int32_t>(plan.order);
    lower.digits = 1 << plan.bits;
    if (plan.carries_keys) {
      lower.keys = in_workspace.operator()<uint16_t>(plan.lower_keys);
      pass.keys = in_workspace.operator()<uint16_t>(plan.sorted_keys);
    }
    launch_pass(lower, plan, own);
    pass.from = lower.order;
    pass.keys_from = lower.keys;
    pass.shift = plan.bits;
    pass.digits = static_cast<int>(plan.upper_digits(keys));
    pass.bits = bits_of(pass.digits);
    launch_pass(pass, plan, own);
    const int64_t blocks = ceil_div(args.length + 1, kSortThreads);
    find_starts<<<grid_for(plan.rows * blocks, 1, kName), kSortThreads, 0,
                  own>>>(args, pass.keys, static_cast<unsigned>(blocks));
    check_launch("bucket_sort, finding starts");
  }
  launch_write_rounds(args, places, intervals, own);
}

}  // namespace reformer::kernels::cuda
