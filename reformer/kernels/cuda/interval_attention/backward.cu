// Interval attention in bf16, backward: one launch for each round.
//
// A block owns kWarps * 16 consecutive places of one round's order, as keys
// and as queries, and computes all that this round adds to their gradients:
// first over the queries that see its keys (dk, dv), then over the keys that
// its queries see (dq). What the first pass found for pairs within the block
// waits in shared memory for the second. A pair that straddles two blocks is
// computed by both, so that nobody adds to another's sums: no atomics, and each
// row's sums are read and written once a round. The gradient of a unit key is
// projected and is where dq's sum begins.
#include <cmath>

#include "reformer/kernels/cuda/interval_attention/gradients.cuh"
#include "reformer/kernels/cuda/interval_attention/gradients_memory.cuh"
#include "reformer/kernels/cuda/interval_attention/launch.cuh"
#include "reformer/kernels/cuda/interval_attention/statistics.h"
#include "reformer/kernels/cuda/interval_attention/successors.cuh"

namespace reformer::kernels::cuda {
namespace {

struct BackwardRound {
  IntervalAttentionGradArgs<bf16> args;
  const float2* statistics;  // [batch, heads, length]: z and delta
  const float* scales;       // [batch, heads, length]: 1 / |q|
  float* q_sums;             // [heads of the group, length, D] each
  float* v_sums;
  float* k_sums;  // null where k is
  int round;
  int first_head;  // of the group, over all batches
};

template <int D, int kWarps, int kHalo, int kBlocks, bool kKeep>
__global__ void __launch_bounds__(kWarps * 32, kBlocks)
    collect_round(const __grid_constant__ BackwardRound p) {
  constexpr int kRows = kWarps * 16;
  constexpr int kThreads = kWarps * 32;
  using Layout = BackwardLayout<D, kRows, kHalo, kKeep>;
  constexpr int kAll = Layout::kAll;
  static_assert(kRows % kHalo == 0 && kThreads == 2 * kRows);
  REFORMER_SHARED_MEMORY(memory);
  let_next_round_start();
  auto* interval = reinterpret_cast<int2*>(memory + Layout::kInterval);
  auto* statistics = reinterpret_cast<float2*>(memory + Layout::kStatistics);
  auto* scales = reinterpret_cast<float*>(memory + Layout::kScales);
  auto* query_rows = reinterpret_cast<int*>(memory + Layout::kQueryRow);
  auto* key_rows = reinterpret_cast<KeyRow*>(memory + Layout::kKeyRow);
  auto* span = reinterpret_cast<Span*>(memory + Layout::kSpan);
  auto* earlier = reinterpret_cast<Span*>(memory + Layout::kEarlier);
  auto* places = reinterpret_cast<float*>(earlier + p.round * kAll);
  const uint32_t q_tile = shared_address(memory + Layout::kQ);
  const uint32_t d_output_tile = shared_address(memory + Layout::kDOutput);
  const uint32_t value_tile = shared_address(memory + Layout::kValues);
  // Rows of a tile count from the block's own first row: the halo's keys are
  // at rows kRows and on.
  const uint32_t halo_keys =
      shared_address(memory + Layout::kHaloKeys) - kRows * D * 2;

  const IntervalAttentionArgs<bf16>& args = p.args.forward;
  const int length = static_cast<int>(args.length);
  const int tiles = (length + kRows - 1) / kRows;
  const int in_group = blockIdx.x / tiles;
  const int index = p.first_head + in_group;
  const int first = static_cast<int>(blockIdx.x % tiles) * kRows;
  const HeadRound head(args, index, p.round);
  const int64_t b = index / static_cast<int>(args.heads);
  const int64_t h = index % static_cast<int>(args.heads);
  const bf16* q = head_of(args.q, b, h);
  const bf16* k = head.shared ? q : head_of(args.k, b, h);
  const bf16* v = head_of(args.v, b, h);
  const bf16* d_output = head_of(p.args.d_output, b, h);
  const int q_stride = static_cast<int>(args.q.row_stride);
  const int k_stride =
      head.shared ? q_stride : static_cast<int>(args.k.row_stride);
  const int v_stride = static_cast<int>(args.v.row_stride);
  const int d_output_stride = static_cast<int>(p.args.d_output.row_stride);
  const uint32_t own_keys =
      head.shared ? q_tile : shared_address(memory + Layout::own_keys(p.round));
  const int tid = threadIdx.x;
  const int lane = tid % 32;
  const int warp_row = tid / 32 * 16;
  const int g = lane / 4;
  const int t = lane % 4;
  const uint32_t kept =
      shared_address(memory + Layout::kept(p.round, head.shared));
  const int64_t head_row = int64_t{index} * length;
  const int64_t sums_at = int64_t{in_group} * length * D;
  const int end = first + kRows;
  const LaneOffsets<D> offsets(lane);

  // Starts the copy of queries query_rows[at, at + n) into rows `at` and on,
  // but for their intervals.
  const auto copy_queries = [&](int at, int n) {
    copy_rows<D, kThreads>(
        {{q_tile, q, q_stride}, {d_output_tile, d_output, d_output_stride}}, at,
        query_rows + at, n, head.d);
    for (int r = at + tid; r < at + n; r += kThreads) {
      const int row = query_rows[r];
      copy_8(shared_address(statistics + r),
             p.statistics + head_row + max(row, 0), is_real(row));
    }
  };
  // Likewise keys, but for the rows of the block's own q and for places.
  const auto copy_keys = [&](uint32_t tile, int at, int n) {
    if (at == 0 && head.shared) {
      copy_rows<D, kThreads>({{value_tile, v, v_stride, /*values=*/true}}, at,
                             key_rows + at, n, head.d);
    } else {
      copy_rows<D, kThreads>(
          {{tile, k, k_stride}, {value_tile, v, v_stride, /*values=*/true}}, at,
          key_rows + at, n, head.d);
    }
    if (!head.shared) return;
    for (int r = at + tid; r < at + n; r += kThreads) {
      const int row = key_rows[r].row;
      copy_4(shared_address(scales + r), p.scales + head_row + max(row, 0),
             is_real(row));
    }
  };

  const auto store_intervals = [&](int at, const RowIntervals& of) {
    interval[at] = of.store(earlier + at, kAll, p.round);
    span[at] = span_of(interval[at]);
  };

  // The halo is first the queries after the block's own places and the keys
  // before them. All of them, before anybody knows how many are needed: to
  // wait for the intervals first would cost more.
  int query_here = kNoRow;
  int key_here = kNoRow;
  if (tid < kAll) {
    query_here = head.row_at(first + tid);
    key_here = tid < kRows ? query_here : head.row_at(first + tid - kAll);
    query_rows[tid] = query_here;
    key_rows[tid] = head.key_in(key_here);
    if (!head.shared) scales[tid] = rsqrtf(static_cast<float>(head.d));
  }
  const RowIntervals intervals_here(head, query_here);
  const RowPlaces places_here(head, key_here);
  __syncthreads();
  copy_queries(0, kAll);
  copy_keys(own_keys, 0, kRows);
  copy_keys(halo_keys, kRows, kHalo);
  if (tid == 0) {  // of the query just before the block's own
    copy_interval(interval + kAll, head.row_at(first - 1), head);
  }
  commit_copies();

  const int row[2] = {query_rows[warp_row + g], query_rows[warp_row + g + 8]};
  const bool last = p.round + 1 == head.rounds;
  wait_for_last_round();
  float d_rows[D / 8][4];  // dk, then dq
  set_zero<D>(d_rows);
  int hull_begin;
  int hull_end;
  {
    float d_values[D / 8][4];
    float* v_sums = p.v_sums + sums_at;
    if (p.round > 0) {
      load_sums<D>(d_values, v_sums, row, t);
    } else {
      set_zero<D>(d_values);
    }
    if (tid < kAll) {
      store_intervals(tid, intervals_here);
      places_here.store(places + tid, kAll, p.round);
    }
    wait_for_copies<0>();
    __syncthreads();
    hull_begin = interval[0].x & ~15;
    hull_end = (interval[kRows - 1].y + 15) & ~15;
    // Of the block before the first, no query: its interval is the empty one
    // at the end.
    const bool seen_from_before = first > 0 && interval[kAll].y > first;

    float inverse[2];
    OwnKeys<D> keys = {OwnRows<D>(own_keys, warp_row, offsets),
                       OwnRows<D>(value_tile, warp_row, offsets)};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = warp_row + g + 8 * half;
      inverse[half] = scales[at];
      keys.scale[half] = inverse[half];
      keys.place[half] = doubled(first + at);
    }
    keys.first = first + warp_row;
    keys.without_self = head.shared;
    keys.places = places + warp_row + g;
    keys.earlier_rounds = p.round;
    keys.stride = kAll;
    keys.kept = kept + warp_row / 16 * kKeptTileBytes;
    keys.g = g;
    keys.t = t;
    if (Layout::kKeptAmongValues) __syncthreads();
    // The block's own places with the halo, then what lies farther: after,
    // before.
    int at = 0;
    int place = first;
    int n = kAll;
    while (true) {
      const GradQueryTile tile = {q_tile,  d_output_tile, interval, span,
                                  earlier, statistics,    kAll,     place - at};
      keys.template collect<kKeep ? kRows : 0>(d_rows, d_values, tile, at,
                                               at + n, offsets);
      if (place == first) place = end;  // its halo, that is
      // The last of these queries may see the block's keys: the next may, too.
      const bool more =
          place > first ? interval[kAll - 1].x < end && place + kHalo < length
                        : interval[kRows].y > first && place > 0;
      place += place > first ? kHalo : -kHalo;
      if (!more) {
        if (place < first || !seen_from_before) break;
        place = first - kHalo;
      }
      at = kRows;
      n = kHalo;
      int far = kNoRow;
      if (tid < kHalo) query_rows[kRows + tid] = far = head.row_at(place + tid);
      const RowIntervals intervals_far(head, far);
      __syncthreads();
      copy_queries(kRows, kHalo);
      commit_copies();
      if (tid < kHalo) store_intervals(kRows + tid, intervals_far);
      wait_for_copies<0>();
      __syncthreads();
    }

    if (last) {
      // A lone token passes its gradient to its own value, whoever offers it.
      int offered[2] = {row[0], row[1]};
      if (head.offered.successors) {
        // That of the first of successors, which nobody offers: end_gradients.
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if (!is_real(row[half])) continue;
          const int to = offered[half] = head.offered.gradient_row(row[half]);
          if (to <= row[half]) continue;
          if (p.statistics[head_row + to].x != kInfinity) continue;
          const bf16* own = d_output + int64_t{to} * d_output_stride;
#pragma unroll
          for (int n = 0; n < D / 8; ++n) {
            const float2 pair = row_pair(own, n, t, head.d);
            d_values[n][2 * half] += pair.x;
            d_values[n][2 * half + 1] += pair.y;
          }
        }
      } else {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int at = warp_row + g + 8 * half;
          if (statistics[at].x != kInfinity) continue;
#pragma unroll
          for (int n = 0; n < D / 8; ++n) {
            const float2 own =
                tile_pair<D>(memory + Layout::kDOutput, at, n, t);
            d_values[n][2 * half] += own.x;
            d_values[n][2 * half + 1] += own.y;
          }
        }
      }
      store_rows<D>(d_values, head_of(p.args.d_v, b, h), p.args.d_v.row_stride,
                    offered, head.d, t);
    } else {
      store_sums<D>(d_values, v_sums, row, t);
    }
    if (head.shared) {
      project<D>(d_rows, memory + Layout::kQ, warp_row + g, inverse, t);
    } else {
      float* k_sums = p.k_sums + sums_at;
      if (p.round > 0) add_sums<D>(d_rows, k_sums, row, t);
      if (last) {
        store_rows<D>(d_rows, head_of(p.args.d_k, b, h), p.args.d_k.row_stride,
                      row, head.d, t);
      } else {
        store_sums<D>(d_rows, k_sums, row, t);
      }
      set_zero<D>(d_rows);
    }
  }

  float* q_sums = p.q_sums + sums_at;
  // To where the halo's queries were, if there is room.
  constexpr bool kCopySums = kHalo >= kRows;
  const int sums_row = kRows + warp_row;
  if (kKeep || (kCopySums && p.round > 0)) __syncthreads();
  if (kCopySums && p.round > 0) {
    copy_sums<D>({q_tile, d_output_tile}, sums_row, q_sums,
                 query_rows + warp_row, lane);
    commit_copies();
  }
  OwnQueries<D> queries = {OwnRows<D>(q_tile, warp_row, offsets),
                           OwnRows<D>(d_output_tile, warp_row, offsets)};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int at = warp_row + g + 8 * half;
    queries.z[half] = statistics[at].x;
    queries.delta[half] = statistics[at].y;
    queries.own[half] = span[at];
  }
  queries.first = first + warp_row;
  queries.without_self = head.shared;
  queries.earlier = earlier + warp_row + g;
  queries.earlier_rounds = p.round;
  queries.stride = kAll;
  queries.g = g;
  queries.t = t;
  const int from = interval[warp_row].x & ~15;
  const int to = (interval[warp_row + 15].y + 15) & ~15;
  int at = 0;
  int place = first;
  int n = kRows;
  while (true) {
    const GradKeyTile tile = {at == 0 ? own_keys : halo_keys,
                              value_tile,
                              scales,
                              places,
                              kAll,
                              place - at};
    const int row_from = max(from - place, 0) + at;
    const int row_to = min(to - place, n) + at;
    if (kKeep && at == 0) {
      add_kept<D>(d_rows, kept + warp_row * (kRows * 2), own_keys, row_from,
                  row_to, lane, offsets);
    } else {
      queries.collect(d_rows, tile, row_from, row_to, offsets);
    }
    at = kRows;
    n = kHalo;
    if (place == first) {
      place -= kHalo;
      continue;
    }
    place += place < first ? -kHalo : kHalo;
    if (place < first && place + kHalo <= hull_begin) place = end;
    if (place > first && place >= hull_end) break;
    int far = kNoRow;
    if (tid < kHalo) {
      far = head.row_at(place + tid);
      key_rows[kRows + tid] = head.key_in(far);
    }
    const RowPlaces places_far(head, far);
    __syncthreads();
    copy_keys(halo_keys, kRows, kHalo);
    commit_copies();
    if (tid < kHalo) places_far.store(places + kRows + tid, kAll, p.round);
    wait_for_copies<0>();
    __syncthreads();
  }

  if (kCopySums && p.round > 0) {
    wait_for_copies<0>();
    __syncwarp();
    add_copied_sums<D>(d_rows, {memory + Layout::kQ, memory + Layout::kDOutput},
                       sums_row + g, t);
  } else if (p.round > 0) {
    add_sums<D>(d_rows, q_sums, row, t);
  }
  if (last) {
    store_rows<D>(d_rows, head_of(p.args.d_q, b, h), p.args.d_q.row_stride, row,
                  head.d, t);
  } else {
    store_sums<D>(d_rows, q_sums, row, t);
  }
}

template <int D, int kWarps, int kHalo, int kBlocks, bool kKeep>
void collect_one_round(const BackwardRound& p, int heads, cudaStream_t stream) {
  using Layout = BackwardLayout<D, kWarps * 16, kHalo, kKeep>;
  constexpr const char* kName = "interval_attention_grad";
  const auto& forward = p.args.forward;
  launch_round(
      collect_round<D, kWarps, kHalo, kBlocks, kKeep>,
      grid_for(heads * ceil_div(forward.length, kWarps * 16), 1, kName),
      kWarps * 32, Layout::bytes(p.round, forward.k.data == nullptr), stream, p,
      kName);
}

template <int D>
void collect_all_rounds(const IntervalAttentionGradArgs<bf16>& args,
                        void* workspace, cudaStream_t stream) {
  // What shared memory allows two or three blocks of.
  constexpr int kWarps = 4;
  constexpr int kHalo = D <= 64 ? 64 : 32;
  constexpr int kBlocks = D <= 64 ? 3 : 2;
  // Wide rows leave no room for what could be kept on smaller GPUs.
  constexpr bool kAlways = D <= 64;
  using Keeping = BackwardLayout<D, kWarps * 16, kHalo, true>;
  using Layout = BackwardLayout<D, kWarps * 16, kHalo, kAlways>;
  using Small = BackwardLayout<D, kSmallWarps * 16, kSmallHalo, false>;
  static_assert(Small::bytes(kMaxRounds - 1, false) <= kLeastSharedMemory);
  const BackwardWorkspace cut(args);
  const bool shared = !cut.separate;
  const IntervalAttentionArgs<bf16>& forward = args.forward;
  const int rounds = static_cast<int>(forward.rounds.rounds);
  require_room(Small::bytes(rounds - 1, shared), rounds, D,
               "interval_attention_grad");
  auto* statistics = static_cast<float2*>(workspace);
  auto* scales = static_cast<float*>(workspace) + 2 * cut.rows;
  float* q_sums = scales + cut.rows;
  float* v_sums = q_sums + cut.sums;
  float* k_sums = v_sums + cut.sums;
  BackwardRound p = {args, statistics, scales, q_sums, v_sums, k_sums, 0, 0};
  row_statistics(args, statistics, stream);
  if (shared) inverse_norms(forward, 1, scales, stream);
  const bool keep = fits_shared_memory(Keeping::bytes(rounds - 1, shared));
  for_each_group(forward, [&](int first, int heads) {
    p.first_head = first;
    for (int round = 0; round < rounds; ++round) {
      p.round = round;
      if (keep) {
        collect_one_round<D, kWarps, kHalo, kBlocks, true>(p, heads, stream);
      } else if (fits_shared_memory(Layout::bytes(round, shared))) {
        collect_one_round<D, kWarps, kHalo, kBlocks, kAlways>(p, heads, stream);
      } else {
        collect_one_round<D, kSmallWarps, kSmallHalo, 2, false>(p, heads,
                                                                stream);
      }
    }
  });
}

}  // namespace

int64_t interval_attention_grad_workspace(
    const IntervalAttentionGradArgs<bf16>& args) {
  return BackwardWorkspace(args).floats() * 4;
}

void interval_attention_grad(const IntervalAttentionGradArgs<bf16>& args,
                             void* workspace, void* stream) {
  require_supported(args.forward);
  with_padded_d(args.forward.d_head, [&](auto d) {
    collect_all_rounds<d>(args, workspace, stream_of(stream));
  });
  end_gradients(args, stream_of(stream));
}

}  // namespace reformer::kernels::cuda
