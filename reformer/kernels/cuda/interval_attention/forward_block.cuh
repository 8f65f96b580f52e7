// One block of the forward pass in bf16: what it knows, and the steps that
// attend_round (forward.cu) takes.
#pragma once

#include "reformer/kernels/cuda/interval_attention/queries.cuh"

namespace reformer::kernels::cuda {

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
  static constexpr int kRow = kScales + kAll * 4;           // KeyRow [kAll]
  static constexpr int kEarlier = kRow + kAll * 8;
  // Then, for each earlier round, Span [kRows] and float [kAll].
  static constexpr int bytes(int round) {
    return kEarlier + round * (kRows * 8 + kAll * 4);
  }
};

// Where a block stands, what it reads and writes (in registers, all of it), and
// its steps, in their order.
template <int D, int kWarps, int kHalo>
struct ForwardBlock {
  static constexpr int kRows = kWarps * 16;
  static constexpr int kThreads = kWarps * 32;
  using Layout = ForwardLayout<D, kRows, kHalo>;
  static constexpr int kAll = Layout::kAll;
  static_assert(kRows % kHalo == 0 && kThreads == 2 * kRows);

  __device__ __forceinline__ ForwardBlock(const ForwardRound& round,
                                          unsigned char* memory)
      : p(round),
        interval(reinterpret_cast<int2*>(memory + Layout::kInterval)),
        scales(reinterpret_cast<float*>(memory + Layout::kScales)),
        rows(reinterpret_cast<KeyRow*>(memory + Layout::kRow)),
        earlier(reinterpret_cast<Span*>(memory + Layout::kEarlier)),
        places(reinterpret_cast<float*>(earlier + p.round * kRows)),
        keys(shared_address(memory + Layout::kKeys)),
        values(shared_address(memory + Layout::kValues)),
        length(static_cast<int>(p.args.length)),
        in_group(blockIdx.x / tiles()),
        index(p.first_head + in_group),
        first(static_cast<int>(blockIdx.x % tiles()) * kRows),
        head(p.args, index, p.round),
        b(index / static_cast<int>(p.args.heads)),
        h(index % static_cast<int>(p.args.heads)),
        q(head_of(p.args.q, b, h)),
        k(head.shared ? q : head_of(p.args.k, b, h)),
        v(head_of(p.args.v, b, h)),
        q_stride(static_cast<int>(p.args.q.row_stride)),
        k_stride(head.shared ? q_stride
                             : static_cast<int>(p.args.k.row_stride)),
        v_stride(static_cast<int>(p.args.v.row_stride)),
        head_scales(p.scales + int64_t{index} * length),
        tid(threadIdx.x),
        lane(tid % 32),
        warp_row(tid / 32 * 16),
        g(lane / 4),
        t(lane % 4),
        offsets(lane) {}

  __device__ __forceinline__ int tiles() const {
    return (length + kRows - 1) / kRows;
  }

  // Starts the copy of keys rows[at, at + n) into the tiles' rows at ..., but
  // for what earlier rounds say of them.
  __device__ __forceinline__ void copy_keys(int at, int n) const {
    copy_rows<D, kThreads>(
        {{keys, k, k_stride}, {values, v, v_stride, /*values=*/true}}, at,
        rows + at, n, head.d);
    if (!head.shared) return;
    for (int r = at + tid; r < at + n; r += kThreads) {
      const int row = rows[r].row;
      copy_4(shared_address(scales + r), head_scales + max(row, 0),
             is_real(row));
    }
  }

  __device__ __forceinline__ void load_queries(Queries<D>& queries) const {
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      load_a<D>(queries.q[step], keys, warp_row, step, offsets);
    }
  }

  // Of queries that are not the keys: through the tile of keys.
  __device__ __forceinline__ void copy_and_load_queries(
      Queries<D>& queries) const {
    copy_rows<D, kThreads>({{keys, q, q_stride}}, 0, rows, kRows, head.d);
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    load_queries(queries);
    __syncthreads();
  }

  // What is kept of the head between rounds.
  struct Kept {
    float* softmax;  // [length, 2]
    float* sums;     // [length, D]
  };
  __device__ __forceinline__ Kept kept() const {
    return {p.args.softmax + int64_t{index} * length * 2,
            p.sums + int64_t{in_group} * length * D};
  }

  // Goes on with the softmax where the last round left it.
  __device__ __forceinline__ void begin(Queries<D>& queries, const Kept& kept,
                                        const int (&row)[2]) const {
    if (p.round > 0) {
      load_sums<D>(queries.o, kept.sums, row, t);
    } else {
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        queries.o[n][0] = queries.o[n][1] = queries.o[n][2] = queries.o[n][3] =
            0;
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      queries.ref[half] = -kInfinity;
      queries.sum[half] = 0;
      if (p.round == 0 || row[half] == kNoRow) continue;
      const float2 before = __ldcg(reinterpret_cast<const float2*>(
          kept.softmax + int64_t{position_of(row[half])} * 2));
      queries.ref[half] = before.x;
      queries.sum[half] = t == 0 ? before.y : 0;
    }
    queries.self = head.shared ? first + warp_row : -1;
    queries.earlier = earlier + warp_row + g;
    queries.earlier_rounds = p.round;
    queries.earlier_stride = kRows;
    queries.g = g;
    queries.t = t;
  }

  // Places that this warp's queries see, and the block's.
  struct Hulls {
    int from;
    int to;
    int begin;
    int end;
  };
  // Whole groups of 16 keys.
  __device__ __forceinline__ Hulls hulls() const {
    return {interval[warp_row].x & ~15, (interval[warp_row + 15].y + 15) & ~15,
            interval[0].x & ~15, (interval[kRows - 1].y + 15) & ~15};
  }

  // Whether this warp's scores are bounded (queries.cuh): then its references
  // begin at 0.
  __device__ __forceinline__ bool bound(Queries<D>& queries) const {
    // scale = log2(e) / |q|, and no score is above |q| log2(e).
    const float scale = scales[warp_row + lane % 16];
    const bool bounded =
        __all_sync(kAllLanes, scale == 0 || kLog2E * kLog2E <= kBound * scale);
    if (bounded) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (queries.ref[half] == -kInfinity) queries.ref[half] = 0;
      }
    }
    return bounded;
  }

  // The n keys from `place` on, at rows `at` and on of the tiles.
  __device__ __forceinline__ void attend(Queries<D>& queries, bool bounded,
                                         const Hulls& hulls, int place, int at,
                                         int n) const {
    const KeyTile tile = {keys, values, scales, places, kAll, place - at};
    const int row_from = max(hulls.from - place, 0) + at;
    const int row_to = min(hulls.to - place, n) + at;
    if (bounded) {
      queries.template attend<true>(tile, row_from, row_to, offsets);
    } else {
      queries.template attend<false>(tile, row_from, row_to, offsets);
    }
  }

  // The keys at `place` and on take the halo's rows.
  __device__ __forceinline__ void fetch_halo(int place) const {
    int far = kNoRow;
    if (tid < kHalo) {
      far = head.row_at(place + tid);
      rows[kRows + tid] = head.key_in(far);
    }
    const RowPlaces places_far(head, far);
    __syncthreads();
    copy_keys(kRows, kHalo);
    commit_copies();
    if (tid < kHalo) places_far.store(places + kRows + tid, kAll, p.round);
    wait_for_copies<0>();
    __syncthreads();
  }

  // Leaves sums to the next round; the last writes output and log-sum-exp.
  __device__ __forceinline__ void end(Queries<D>& queries, const Kept& kept,
                                      const int (&row)[2]) const {
    const bool last = p.round + 1 == head.rounds;
    if (!last) store_sums<D>(queries.o, kept.sums, row, t);
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
        take_own_value(queries, row[half], half);
      }
      if (t != 0 || row[half] == kNoRow) continue;
      const int64_t i = position_of(row[half]);
      *reinterpret_cast<float2*>(kept.softmax + 2 * i) = {ref, sum};
      if (last) {
        p.args.lse[int64_t{index} * length + i] = ref + logf(sum);
      }
    }
    if (last) {
      store_rows<D>(queries.o, head_of(p.args.output, b, h),
                    p.args.output.row_stride, row, head.d, t);
    }
  }

  __device__ __forceinline__ void take_own_value(Queries<D>& queries, int row,
                                                 int half) const {
    const bf16* own = v + int64_t{max(row, 0)} * v_stride;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const float2 pair = row_pair(own, n, t, is_real(row) ? head.d : 0);
      queries.o[n][2 * half] = pair.x;
      queries.o[n][2 * half + 1] = pair.y;
    }
  }

  const ForwardRound& p;
  // In shared memory, as Layout says.
  int2* interval;
  float* scales;
  KeyRow* rows;
  Span* earlier;
  float* places;
  uint32_t keys;
  uint32_t values;

  int length;
  int in_group;  // the head's number in its group
  int index;     // and over all batches
  int first;     // place of the block's first query
  HeadRound head;
  int64_t b;
  int64_t h;
  const bf16* q;
  const bf16* k;
  const bf16* v;
  int q_stride;
  int k_stride;
  int v_stride;
  const float* head_scales;

  int tid;
  int lane;
  int warp_row;  // of the block's rows, this warp's first
  int g;
  int t;
  LaneOffsets<D> offsets;
};

}  // namespace reformer::kernels::cuda
