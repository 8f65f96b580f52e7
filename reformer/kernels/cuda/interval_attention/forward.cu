// Interval attention in bf16, forward: one launch for each round.
//
// A block owns kWarps * 16 consecutive places of one round's order, as
// queries. It gathers the rows at these places and at those before (and after)
// that their intervals reach into shared memory, q and v once each; each warp
// takes 16 queries over the hull of their own intervals. Between rounds the
// weighted values of a query are kept as fp32 sums in the workspace, its
// weights' reference and sum in `softmax`: a round reads and writes them once.
#include <cmath>

#include "reformer/kernels/cuda/interval_attention/launch.cuh"
#include "reformer/kernels/cuda/interval_attention/queries.cuh"
#include "reformer/kernels/cuda/interval_attention/statistics.h"

namespace reformer::kernels::cuda {
namespace {

struct ForwardRound {
  IntervalAttentionArgs<bf16> args;
  const float* scales;  // [batch, heads, length]: log2(e) / |q|
  float* sums;          // [heads of the group, length, D]
  int round;
  int first_head;  // of the group, over all batches
};

// Where things lie in a block's shared memory, in bytes.
template <int D, int kRows, int kHalo>
struct ForwardLayout {
  static constexpr int kAll = kRows + kHalo;
  static constexpr int kKeys = 0;
  static constexpr int kValues = kKeys + kAll * D * 2;
  static constexpr int kInterval = kValues + kAll * D * 2;  // int2 [kRows]
  static constexpr int kScales = kInterval + kRows * 8;     // float [kAll]
  static constexpr int kRow = kScales + kAll * 4;           // int [kAll]
  static constexpr int kEarlier = kRow + kAll * 4;
  // Then, for each earlier round, Span [kRows] and float [kAll].
  static constexpr int bytes(int round) {
    return kEarlier + round * (kRows * 8 + kAll * 4);
  }
};

template <int D, int kWarps, int kHalo, int kBlocks>
__global__ void __launch_bounds__(kWarps * 32, kBlocks)
    attend_round(const __grid_constant__ ForwardRound p) {
  constexpr int kRows = kWarps * 16;
  constexpr int kThreads = kWarps * 32;
  using Layout = ForwardLayout<D, kRows, kHalo>;
  constexpr int kAll = Layout::kAll;
  static_assert(kRows % kHalo == 0 && kThreads == 2 * kRows);
  REFORMER_SHARED_MEMORY(memory);
  let_next_round_start();
  auto* interval = reinterpret_cast<int2*>(memory + Layout::kInterval);
  auto* scales = reinterpret_cast<float*>(memory + Layout::kScales);
  auto* rows = reinterpret_cast<int*>(memory + Layout::kRow);
  auto* earlier = reinterpret_cast<Span*>(memory + Layout::kEarlier);
  auto* places = reinterpret_cast<float*>(earlier + p.round * kRows);
  const uint32_t keys = shared_address(memory + Layout::kKeys);
  const uint32_t values = shared_address(memory + Layout::kValues);

  const int length = static_cast<int>(p.args.length);
  const int tiles = (length + kRows - 1) / kRows;
  const int in_group = blockIdx.x / tiles;
  const int index = p.first_head + in_group;
  const int first = static_cast<int>(blockIdx.x % tiles) * kRows;
  const HeadRound head(p.args, index, p.round);
  const int64_t b = index / static_cast<int>(p.args.heads);
  const int64_t h = index % static_cast<int>(p.args.heads);
  const bf16* q = head_of(p.args.q, b, h);
  const bf16* k = head.shared ? q : head_of(p.args.k, b, h);
  const bf16* v = head_of(p.args.v, b, h);
  const int q_stride = static_cast<int>(p.args.q.row_stride);
  const int k_stride =
      head.shared ? q_stride : static_cast<int>(p.args.k.row_stride);
  const int v_stride = static_cast<int>(p.args.v.row_stride);
  const float* head_scales = p.scales + int64_t{index} * length;
  const int tid = threadIdx.x;
  const int lane = tid % 32;
  const int warp_row = tid / 32 * 16;
  const int g = lane / 4;
  const int t = lane % 4;

  const LaneOffsets<D> offsets(lane);

  // Starts the copy of keys rows[at, at + n) into the tiles' rows at ..., but
  // for what earlier rounds say of them.
  const auto copy_keys = [&](int at, int n) {
    copy_rows<D, kThreads>(
        {{keys, k, k_stride}, {values, v, v_stride, head.offered}}, at,
        rows + at, n, head.d);
    if (!head.shared) return;
    for (int r = at + tid; r < at + n; r += kThreads) {
      const int row = rows[r];
      copy_4(shared_address(scales + r), head_scales + max(row, 0),
             is_real(row));
    }
  };

  // The halo is first what lies before the block's own places.
  int row_here = kNoRow;
  if (tid < kAll) {
    row_here = head.row_at(first + tid - (tid < kRows ? 0 : kAll));
    rows[tid] = row_here;
  }
  const RowIntervals intervals_here(head, tid < kRows ? row_here : kNoRow);
  const RowPlaces places_here(head, row_here);
  if (!head.shared) {
    const float scale = kLog2E * rsqrtf(static_cast<float>(head.d));
    for (int r = tid; r < kAll; r += kThreads) scales[r] = scale;
  }
  __syncthreads();

  Queries<D> queries;
  if (!head.shared) {  // through the tile of keys into registers
    copy_rows<D, kThreads>({{keys, q, q_stride}}, 0, rows, kRows, head.d);
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      load_a<D>(queries.q[step], keys, warp_row, step, offsets);
    }
    __syncthreads();
  }
  // All of the halo, before anybody knows how much of it is needed: to wait
  // for the intervals first would cost more.
  copy_keys(0, kAll);
  commit_copies();

  const int row[2] = {rows[warp_row + g], rows[warp_row + g + 8]};
  float* softmax = p.args.softmax + int64_t{index} * length * 2;
  float* sums = p.sums + int64_t{in_group} * length * D;
  wait_for_last_round();
  if (p.round > 0) {
    load_sums<D>(queries.o, sums, row, t);
  } else {
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      queries.o[n][0] = queries.o[n][1] = queries.o[n][2] = queries.o[n][3] = 0;
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    queries.ref[half] = -kInfinity;
    queries.sum[half] = 0;
    if (p.round == 0 || row[half] == kNoRow) continue;
    const float2 before = __ldcg(reinterpret_cast<const float2*>(
        softmax + int64_t{position_of(row[half])} * 2));
    queries.ref[half] = before.x;
    queries.sum[half] = t == 0 ? before.y : 0;
  }
  queries.self = head.shared ? first + warp_row : -1;
  queries.earlier = earlier + warp_row + g;
  queries.earlier_rounds = p.round;
  queries.earlier_stride = kRows;
  queries.g = g;
  queries.t = t;

  if (tid < kRows) {
    interval[tid] = intervals_here.store(earlier + tid, kRows, p.round);
  }
  if (tid < kAll) places_here.store(places + tid, kAll, p.round);
  wait_for_copies<0>();
  __syncthreads();
  queries.own[0] = span_of(interval[warp_row + g]);
  queries.own[1] = span_of(interval[warp_row + g + 8]);
  // Whole groups of 16 keys.
  const int from = interval[warp_row].x & ~15;
  const int to = (interval[warp_row + 15].y + 15) & ~15;
  const int hull_begin = interval[0].x & ~15;
  const int hull_end = (interval[kRows - 1].y + 15) & ~15;
  bool bounded = false;
  if (head.shared) {
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      load_a<D>(queries.q[step], keys, warp_row, step, offsets);
    }
    // scale = log2(e) / |q|, and no score is above |q| log2(e).
    const float scale = scales[warp_row + lane % 16];
    bounded =
        __all_sync(kAllLanes, scale == 0 || kLog2E * kLog2E <= kBound * scale);
    if (bounded) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (queries.ref[half] == -kInfinity) queries.ref[half] = 0;
      }
    }
  }
  // The block's own places, the halo, then what lies farther: before, after.
  int at = 0;
  int place = first;
  int n = kRows;
  while (true) {
    const KeyTile tile = {keys, values, scales, places, kAll, place - at};
    const int row_from = max(from - place, 0) + at;
    const int row_to = min(to - place, n) + at;
    if (bounded) {
      queries.template attend<true>(tile, row_from, row_to, offsets);
    } else {
      queries.template attend<false>(tile, row_from, row_to, offsets);
    }
    at = kRows;
    n = kHalo;
    if (place == first) {
      place -= kHalo;
      continue;
    }
    place += place < first ? -kHalo : kHalo;
    if (place < first && place + kHalo <= hull_begin) place = first + kRows;
    if (place > first && place >= hull_end) break;
    int far = kNoRow;
    if (tid < kHalo) rows[kRows + tid] = far = head.row_at(place + tid);
    const RowPlaces places_far(head, far);
    __syncthreads();
    copy_keys(kRows, kHalo);
    commit_copies();
    if (tid < kHalo) places_far.store(places + kRows + tid, kAll, p.round);
    wait_for_copies<0>();
    __syncthreads();
  }

  const bool last = p.round + 1 == head.rounds;
  if (!last) store_sums<D>(queries.o, sums, row, t);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = quad_sum(queries.sum[half]);
    float ref = queries.ref[half] * (last ? kLn2 : 1.0f);
    if (last && sum != 0) {
      const float inverse = 1 / sum;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        queries.o[n][2 * half] *= inverse;
        queries.o[n][2 * half + 1] *= inverse;
      }
    } else if (last) {  // nobody but itself
      ref = -kInfinity;
      const bf16* own = v + int64_t{max(row[half], 0)} * v_stride;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        const float2 pair =
            row_pair(own, n, t, is_real(row[half]) ? head.d : 0);
        queries.o[n][2 * half] = pair.x;
        queries.o[n][2 * half + 1] = pair.y;
      }
    }
    if (t != 0 || row[half] == kNoRow) continue;
    const int64_t i = position_of(row[half]);
    *reinterpret_cast<float2*>(softmax + 2 * i) = {ref, sum};
    if (last) {
      p.args.lse[int64_t{index} * length + i] = ref + logf(sum);
    }
  }
  if (last) {
    store_rows<D>(queries.o, head_of(p.args.output, b, h),
                  p.args.output.row_stride, row, head.d, t);
  }
}

template <int D, int kWarps, int kHalo, int kBlocks>
void attend_one_round(const ForwardRound& p, int heads, cudaStream_t stream) {
  using Layout = ForwardLayout<D, kWarps * 16, kHalo>;
  constexpr const char* kName = "interval_attention";
  launch_round(attend_round<D, kWarps, kHalo, kBlocks>,
               grid_for(heads * ceil_div(p.args.length, kWarps * 16), 1, kName),
               kWarps * 32, Layout::bytes(p.round), stream, p, kName);
}

template <int D>
void attend_all_rounds(const IntervalAttentionArgs<bf16>& args, void* workspace,
                       cudaStream_t stream) {
  // Measured: 8 warps and longer halos read fewer rows, but wait more.
  constexpr int kWarps = 4;
  constexpr int kHalo = D <= 64 ? 64 : 32;
  constexpr int kBlocks = D <= 64 ? 4 : 3;
  using Layout = ForwardLayout<D, kWarps * 16, kHalo>;
  using Small = ForwardLayout<D, kSmallWarps * 16, kSmallHalo>;
  static_assert(Small::bytes(kMaxRounds - 1) <= kLeastSharedMemory);
  const int64_t rows = args.batch * args.heads * args.length;
  ForwardRound p = {args, nullptr, nullptr, 0, 0};
  auto* scales = static_cast<float*>(workspace);
  p.scales = scales;
  p.sums = scales + (rows + 3) / 4 * 4;
  const int rounds = static_cast<int>(args.rounds.rounds);
  require_room(Small::bytes(rounds - 1), rounds, D, "interval_attention");
  if (!args.k.data) inverse_norms(args, kLog2E, scales, stream);
  for_each_group(args, [&](int first, int heads) {
    p.first_head = first;
    for (int round = 0; round < rounds; ++round) {
      p.round = round;
      fits_shared_memory(Layout::bytes(round))
          ? attend_one_round<D, kWarps, kHalo, kBlocks>(p, heads, stream)
          : attend_one_round<D, kSmallWarps, kSmallHalo, 2>(p, heads, stream);
    }
  });
}

}  // namespace

int64_t interval_attention_workspace(const IntervalAttentionArgs<bf16>& args) {
  const int64_t rows = args.batch * args.heads * args.length;
  const int64_t scales = (rows + 3) / 4 * 4;
  const int64_t sums =
      args.rounds.rounds > 1
          ? heads_together(args) * args.length * padded_d(args.d_head)
          : 0;
  return (scales + sums) * 4;
}

void interval_attention(const IntervalAttentionArgs<bf16>& args,
                        void* workspace, void* stream) {
  require_supported(args);
  with_padded_d(args.d_head, [&](auto d) {
    attend_all_rounds<d>(args, workspace, stream_of(stream));
  });
}

}  // namespace reformer::kernels::cuda
