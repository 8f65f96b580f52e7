// One block of the backward pass in bf16: what it knows, and the steps that
// collect_round (backward.cu) takes.
#pragma once

#include "reformer/kernels/cuda/interval_attention/gradients.cuh"
#include "reformer/kernels/cuda/interval_attention/gradients_memory.cuh"

namespace reformer::kernels::cuda {

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

// Where a block stands, what it reads and writes (in registers, all of it), and
// its steps, in their order.
template <int D, int kWarps, int kHalo, bool kKeep>
struct BackwardBlock {
  static constexpr int kRows = kWarps * 16;
  static constexpr int kThreads = kWarps * 32;
  using Layout = BackwardLayout<D, kRows, kHalo, kKeep>;
  static constexpr int kAll = Layout::kAll;
  static_assert(kRows % kHalo == 0 && kThreads == 2 * kRows);
  // Of 16 rows, a warp's.
  using Sums = float[D / 8][4];

  __device__ __forceinline__ BackwardBlock(const BackwardRound& round,
                                           unsigned char* shared)
      : p(round),
        memory(shared),
        interval(reinterpret_cast<int2*>(memory + Layout::kInterval)),
        statistics(reinterpret_cast<float2*>(memory + Layout::kStatistics)),
        scales(reinterpret_cast<float*>(memory + Layout::kScales)),
        query_rows(reinterpret_cast<int*>(memory + Layout::kQueryRow)),
        key_rows(reinterpret_cast<KeyRow*>(memory + Layout::kKeyRow)),
        span(reinterpret_cast<Span*>(memory + Layout::kSpan)),
        earlier(reinterpret_cast<Span*>(memory + Layout::kEarlier)),
        places(reinterpret_cast<float*>(earlier + p.round * kAll)),
        q_tile(shared_address(memory + Layout::kQ)),
        d_output_tile(shared_address(memory + Layout::kDOutput)),
        value_tile(shared_address(memory + Layout::kValues)),
        halo_keys(shared_address(memory + Layout::kHaloKeys) - kRows * D * 2),
        length(static_cast<int>(p.args.forward.length)),
        in_group(blockIdx.x / tiles()),
        index(p.first_head + in_group),
        first(static_cast<int>(blockIdx.x % tiles()) * kRows),
        end(first + kRows),
        head(p.args.forward, index, p.round),
        b(index / static_cast<int>(p.args.forward.heads)),
        h(index % static_cast<int>(p.args.forward.heads)),
        q(head_of(p.args.forward.q, b, h)),
        k(head.shared ? q : head_of(p.args.forward.k, b, h)),
        v(head_of(p.args.forward.v, b, h)),
        d_output(head_of(p.args.d_output, b, h)),
        q_stride(static_cast<int>(p.args.forward.q.row_stride)),
        k_stride(head.shared ? q_stride
                             : static_cast<int>(p.args.forward.k.row_stride)),
        v_stride(static_cast<int>(p.args.forward.v.row_stride)),
        d_output_stride(static_cast<int>(p.args.d_output.row_stride)),
        own_keys(head.shared
                     ? q_tile
                     : shared_address(memory + Layout::own_keys(p.round))),
        tid(threadIdx.x),
        lane(tid % 32),
        warp_row(tid / 32 * 16),
        g(lane / 4),
        t(lane % 4),
        kept(shared_address(memory + Layout::kept(p.round, head.shared))),
        head_row(int64_t{index} * length),
        sums_at(int64_t{in_group} * length * D),
        last(p.round + 1 == head.rounds),
        offsets(lane) {}

  __device__ __forceinline__ int tiles() const {
    return (length + kRows - 1) / kRows;
  }

  // Starts the copy of queries query_rows[at, at + n) into rows `at` and on,
  // but for their intervals.
  __device__ __forceinline__ void copy_queries(int at, int n) const {
    copy_rows<D, kThreads>(
        {{q_tile, q, q_stride}, {d_output_tile, d_output, d_output_stride}}, at,
        query_rows + at, n, head.d);
    for (int r = at + tid; r < at + n; r += kThreads) {
      const int row = query_rows[r];
      copy_8(shared_address(statistics + r),
             p.statistics + head_row + max(row, 0), is_real(row));
    }
  }

  // Likewise keys, but for the rows of the block's own q and for places.
  __device__ __forceinline__ void copy_keys(uint32_t tile, int at,
                                            int n) const {
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
  }

  // All that the first tiles hold. The halo is first the queries after the
  // block's own places and the keys before them. All of them, before anybody
  // knows how many are needed: to wait for the intervals first would cost more.
  __device__ __forceinline__ void copy_first_tiles() const {
    copy_queries(0, kAll);
    copy_keys(own_keys, 0, kRows);
    copy_keys(halo_keys, kRows, kHalo);
    if (tid == 0) {  // of the query just before the block's own
      copy_interval(interval + kAll, head.row_at(first - 1), head);
    }
    commit_copies();
  }

  __device__ __forceinline__ void store_intervals(
      int at, const RowIntervals& of) const {
    interval[at] = of.store(earlier + at, kAll, p.round);
    span[at] = span_of(interval[at]);
  }

  // The queries at `place` and on take the halo's rows.
  __device__ __forceinline__ void fetch_queries(int place) const {
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

  // The keys at `place` and on do.
  __device__ __forceinline__ void fetch_keys(int place) const {
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

  // Places of the keys that the block's queries see, whole groups of 16.
  struct Hull {
    int begin;
    int end;
  };
  __device__ __forceinline__ Hull hull() const {
    return {interval[0].x & ~15, (interval[kRows - 1].y + 15) & ~15};
  }

  // Whether queries of the block before see keys of this one. Before the first
  // is none: its interval is the empty one at the end.
  __device__ __forceinline__ bool seen_from_before() const {
    return first > 0 && interval[kAll].y > first;
  }

  // This warp's rows as keys; their scales are also left in `inverse`.
  __device__ __forceinline__ OwnKeys<D> as_keys(float (&inverse)[2]) const {
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
    return keys;
  }

  // dk and dv of this warp's keys: over the block's own places with the halo,
  // then over queries that lie farther: after, before.
  __device__ __forceinline__ void collect_queries(const OwnKeys<D>& keys,
                                                  Sums& d_keys, Sums& d_values,
                                                  bool from_before) const {
    int at = 0;
    int place = first;
    int n = kAll;
    while (true) {
      const GradQueryTile tile = {q_tile,  d_output_tile, interval, span,
                                  earlier, statistics,    kAll,     place - at};
      keys.template collect<kKeep ? kRows : 0>(d_keys, d_values, tile, at,
                                               at + n, offsets);
      if (place == first) place = end;  // its halo, that is
      // The last of these queries may see the block's keys: the next may, too.
      const bool more =
          place > first ? interval[kAll - 1].x < end && place + kHalo < length
                        : interval[kRows].y > first && place > 0;
      place += place > first ? kHalo : -kHalo;
      if (!more) {
        if (place < first || !from_before) break;
        place = first - kHalo;
      }
      at = kRows;
      n = kHalo;
      fetch_queries(place);
    }
  }

  // A lone token passes its gradient to its own value, whoever offers it.
  // Returns the rows of d_v that are this warp's.
  struct Offered {
    int row[2];
  };
  __device__ __forceinline__ Offered add_lone(Sums& d_values,
                                              const int (&row)[2]) const {
    Offered offered = {{row[0], row[1]}};
    if (head.offered.successors) {
      // That of the first of successors, which nobody offers: end_gradients.
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (!is_real(row[half])) continue;
        const int to = offered.row[half] = head.offered.gradient_row(row[half]);
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
          const float2 own = tile_pair<D>(memory + Layout::kDOutput, at, n, t);
          d_values[n][2 * half] += own.x;
          d_values[n][2 * half + 1] += own.y;
        }
      }
    }
    return offered;
  }

  // Leaves dv to the next round; the last writes it.
  __device__ __forceinline__ void end_values(Sums& d_values,
                                             const int (&row)[2]) const {
    if (last) {
      const Offered offered = add_lone(d_values, row);
      store_rows<D>(d_values, head_of(p.args.d_v, b, h), p.args.d_v.row_stride,
                    offered.row, head.d, t);
    } else {
      store_sums<D>(d_values, p.v_sums + sums_at, row, t);
    }
  }

  // Likewise dk. Of keys that are queries, too, it is where dq begins.
  __device__ __forceinline__ void end_keys(Sums& d_keys,
                                           const float (&inverse)[2],
                                           const int (&row)[2]) const {
    if (head.shared) {
      project<D>(d_keys, memory + Layout::kQ, warp_row + g, inverse, t);
      return;
    }
    float* k_sums = p.k_sums + sums_at;
    if (p.round > 0) add_sums<D>(d_keys, k_sums, row, t);
    if (last) {
      store_rows<D>(d_keys, head_of(p.args.d_k, b, h), p.args.d_k.row_stride,
                    row, head.d, t);
    } else {
      store_sums<D>(d_keys, k_sums, row, t);
    }
    set_zero<D>(d_keys);
  }

  // Sums of dq come early, to where the halo's queries were, if there is room.
  static constexpr bool kCopySums = kHalo >= kRows;
  __device__ __forceinline__ void copy_query_sums() const {
    if (kKeep || (kCopySums && p.round > 0)) __syncthreads();
    if (kCopySums && p.round > 0) {
      copy_sums<D>({q_tile, d_output_tile}, kRows + warp_row,
                   p.q_sums + sums_at, query_rows + warp_row, lane);
      commit_copies();
    }
  }

  // This warp's rows as queries.
  __device__ __forceinline__ OwnQueries<D> as_queries() const {
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
    queries.earlier_stride = kAll;
    queries.g = g;
    queries.t = t;
    return queries;
  }

  // dq of this warp's queries: over the block's own places, the halo, then over
  // keys that lie farther: before, after.
  __device__ __forceinline__ void collect_keys(const OwnQueries<D>& queries,
                                               Sums& d_queries,
                                               const Hull& hull) const {
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
        add_kept<D>(d_queries, kept + warp_row * (kRows * 2), own_keys,
                    row_from, row_to, lane, offsets);
      } else {
        queries.collect(d_queries, tile, row_from, row_to, offsets);
      }
      at = kRows;
      n = kHalo;
      if (place == first) {
        place -= kHalo;
        continue;
      }
      place += place < first ? -kHalo : kHalo;
      if (place < first && place + kHalo <= hull.begin) place = end;
      if (place > first && place >= hull.end) break;
      fetch_keys(place);
    }
  }

  // Likewise dq.
  __device__ __forceinline__ void end_queries(Sums& d_queries,
                                              const int (&row)[2]) const {
    float* q_sums = p.q_sums + sums_at;
    if (kCopySums && p.round > 0) {
      wait_for_copies<0>();
      __syncwarp();
      add_copied_sums<D>(d_queries,
                         {memory + Layout::kQ, memory + Layout::kDOutput},
                         kRows + warp_row + g, t);
    } else if (p.round > 0) {
      add_sums<D>(d_queries, q_sums, row, t);
    }
    if (last) {
      store_rows<D>(d_queries, head_of(p.args.d_q, b, h), p.args.d_q.row_stride,
                    row, head.d, t);
    } else {
      store_sums<D>(d_queries, q_sums, row, t);
    }
  }

  const BackwardRound& p;
  // In shared memory, as Layout says.
  unsigned char* memory;
  int2* interval;
  float2* statistics;
  float* scales;
  int* query_rows;
  KeyRow* key_rows;
  Span* span;
  Span* earlier;
  float* places;
  uint32_t q_tile;
  uint32_t d_output_tile;
  uint32_t value_tile;
  // Rows of a tile count from the block's own first row: the halo's keys are
  // at rows kRows and on.
  uint32_t halo_keys;

  int length;
  int in_group;  // the head's number in its group
  int index;     // and over all batches
  int first;     // place of the block's first row
  int end;       // and after its last
  HeadRound head;
  int64_t b;
  int64_t h;
  const bf16* q;
  const bf16* k;
  const bf16* v;
  const bf16* d_output;
  int q_stride;
  int k_stride;
  int v_stride;
  int d_output_stride;
  uint32_t own_keys;  // tile

  int tid;
  int lane;
  int warp_row;  // of the block's rows, this warp's first
  int g;
  int t;
  uint32_t kept;     // of the first pass for the second
  int64_t head_row;  // of the head's first, over all batches
  int64_t sums_at;   // of the head's sums
  bool last;         // of the rounds
  LaneOffsets<D> offsets;
};

}  // namespace reformer::kernels::cuda
