#include "reformer/kernels/beam_attention.h"

#include "reformer/kernels/cuda/interval_attention/running_softmax.cuh"
#include "reformer/kernels/cuda/launch.h"

// A block owns a part of what one (row, head) sees, kPart positions: it reads
// each key and value of it once, 16 lanes a row, four rows a group at a time.
// Of several parts each leaves a softmax of its own in the workspace, and a
// second kernel adds these up in the order of parts. Parts begin at multiples
// of kPart, so that a row is added up in a batch as it would be alone.
namespace reformer::kernels::cuda {
namespace {

constexpr int64_t kPart = 1024;
constexpr int kUnrolledRows = 4;

template <class T>
__host__ __device__ int64_t parts_of(const BeamAttentionArgs<T>& args) {
  const int64_t parts = (args.end - args.begin + kPart - 1) / kPart;
  return parts < 1 ? 1 : parts;
}

struct BeamHead {
  int64_t row_head;
  int64_t row;
  int64_t head;

  __device__ BeamHead(int64_t index, int64_t heads)
      : row_head(index), row(index / heads), head(index % heads) {}
};

// The value of a row that sees nobody; 0 of one that must see somebody.
template <class T>
__device__ float own_value(const BeamAttentionArgs<T>& args,
                           const BeamHead& own, int column) {
  if (args.own < 0) return 0;
  return to_float(beam_value(args, args.own, own.row, own.head)[column]);
}

template <class T>
__device__ void write_output(const BeamAttentionArgs<T>& args,
                             const BeamHead& own, const MergedColumn& found,
                             int column) {
  const float value = found.max == -INFINITY ? own_value(args, own, column)
                                             : found.value / found.sum;
  store(args.output.head(own.row, own.head) + column, value);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    beam_attention_kernel(const __grid_constant__ BeamAttentionArgs<T> args,
                          float* partial) {
  __shared__ float sums[kMaxColumns + 2];
  const BeamHead own(blockIdx.y, args.heads);
  const int64_t all = args.ends ? args.ends[own.row] : args.end;
  const int64_t first = args.begin + blockIdx.x * kPart;
  const int64_t end = all < first + kPart ? all : first + kPart;
  const uint8_t* seen =
      args.seen ? args.seen + own.row_head * args.end : nullptr;
  const int64_t later = own.head < args.successor_heads ? 1 : 0;

  const int column = threadIdx.x % kGroupLanes * 8;
  const bool inside = column < args.d_head;
  float q[8] = {};
  if (inside) {
    unpack(load_eight(args.q.head(own.row, own.head) + column), q);
  }
#pragma unroll
  for (float& x : q) x *= float(args.scale);

  RunningSoftmax softmax;
  const int group = static_cast<int>(threadIdx.x) / kGroupLanes;
  // All groups go round equally often: lanes of two groups shuffle together.
  for (int64_t at = first; at < end; at += kGroups * kUnrolledRows) {
    Eight<T> key[kUnrolledRows] = {};
    Eight<T> value[kUnrolledRows] = {};
    bool counts[kUnrolledRows];
#pragma unroll
    for (int u = 0; u < kUnrolledRows; ++u) {
      const int64_t p = at + u * kGroups + group;
      counts[u] = p < end && (seen == nullptr || seen[p] != 0);
      if (!counts[u] || !inside) continue;
      key[u] = load_eight(args.keys.at(p, args.slots.of(p, own.row), own.head) +
                          column);
      value[u] =
          load_eight(beam_value(args, p + later, own.row, own.head) + column);
    }
    float scores[kUnrolledRows];
#pragma unroll
    for (int u = 0; u < kUnrolledRows; ++u) {
      scores[u] = group_dot(q, key[u]);
      if (!counts[u]) scores[u] = -INFINITY;
    }
    softmax.add(scores, value);
  }

  const int d = static_cast<int>(args.d_head);
  const bool alone = gridDim.x == 1;
  float* to = alone ? sums
                    : partial + (own.row_head * gridDim.x + blockIdx.x) *
                                    (args.d_head + 2);
  write_block_sum(softmax, d, to);
  if (!alone) return;
  __syncthreads();
  if (threadIdx.x >= d) return;
  MergedColumn found;
  found.add(sums[d], sums[d + 1], sums[threadIdx.x]);
  write_output(args, own, found, static_cast<int>(threadIdx.x));
}

template <class T>
__global__ void __launch_bounds__(kMaxColumns)
    merge_parts_kernel(const __grid_constant__ BeamAttentionArgs<T> args,
                       const float* partial, int64_t parts) {
  const BeamHead own(blockIdx.x, args.heads);
  const int column = static_cast<int>(threadIdx.x);
  if (column >= args.d_head) return;
  const int64_t stride = args.d_head + 2;
  const float* sums = partial + own.row_head * parts * stride;
  MergedColumn found;
  for (int64_t part = 0; part < parts; ++part, sums += stride) {
    found.add(sums[stride - 2], sums[stride - 1], sums[column]);
  }
  write_output(args, own, found, column);
}

template <class T>
void run(const BeamAttentionArgs<T>& args, void* workspace, void* stream) {
  constexpr const char* kName = "beam_attention";
  const int64_t row_heads = args.rows * args.heads;
  require(row_heads <= 65535, kName, ": at most 65535 heads of all rows are ",
          "possible, got ", row_heads);
  require(args.d_head % 8 == 0 && args.d_head <= kMaxColumns, kName,
          ": heads of a multiple of 8 up to ", kMaxColumns,
          " columns are possible, got ", args.d_head);
  const int64_t parts = parts_of(args);
  auto* partial = static_cast<float*>(workspace);
  const dim3 grid(static_cast<unsigned>(parts),
                  static_cast<unsigned>(row_heads));
  beam_attention_kernel<<<grid, kThreads, 0, stream_of(stream)>>>(args,
                                                                  partial);
  check_launch(kName);
  if (parts == 1) return;
  merge_parts_kernel<<<static_cast<unsigned>(row_heads), kMaxColumns, 0,
                       stream_of(stream)>>>(args, partial, parts);
  check_launch(kName);
}

template <class T>
int64_t workspace(const BeamAttentionArgs<T>& args) {
  const int64_t parts = parts_of(args);
  if (parts == 1) return 0;
  return args.rows * args.heads * parts * (args.d_head + 2) *
         int64_t{sizeof(float)};
}

constexpr int kSeenThreads = 256;

// How many of the block's threads before this one have `flag`, and in all.
__device__ int2 counted_before(bool flag) {
  __shared__ int of_warp[kSeenThreads / 32];
  const unsigned votes = __ballot_sync(0xffffffff, flag);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  __syncthreads();  // the last call's are read
  if (lane == 0) of_warp[warp] = __popc(votes);
  __syncthreads();
  int before = __popc(votes & ((1u << lane) - 1));
  int all = 0;
  for (int w = 0; w < kSeenThreads / 32; ++w) {
    if (w < warp) before += of_warp[w];
    all += of_warp[w];
  }
  return {before, all};
}

// A block owns a (row, head): round by round from the last position to the
// first, a position a thread, until the round's window is full.
__global__ void __launch_bounds__(kSeenThreads)
    beam_seen_kernel(const __grid_constant__ BeamSeenArgs args) {
  const BeamHead own(blockIdx.x, args.heads);
  uint8_t* seen = args.seen + own.row_head * args.position;
  const int me = static_cast<int>(threadIdx.x);
  const bool hashes = own.head < args.hashed_heads;
  const int64_t window = hashes ? args.local_window : args.near_window;
  for (int64_t p = me; p < args.position; p += kSeenThreads) {
    seen[p] = args.position - p <= window ? 1 : 0;
  }
  if (!hashes) return;
  const uint16_t* buckets =
      args.own + (own.row * args.hashed_heads + own.head) * args.rounds;
  for (int64_t r = 0; r < args.rounds; ++r) {
    const uint16_t bucket = buckets[r];
    int64_t met = 0;
    for (int64_t last = args.position; last > 0 && met < args.window;
         last -= kSeenThreads) {
      const int64_t p = last - 1 - me;
      const bool same = p >= 0 && args.buckets.at(p, args.slots.of(p, own.row),
                                                  own.head)[r] == bucket;
      const int2 counts = counted_before(same);
      if (same && met + counts.x < args.window) seen[p] = 1;
      met += counts.y;
    }
  }
}

}  // namespace

int64_t beam_attention_workspace(const BeamAttentionArgs<float>& args) {
  return workspace(args);
}
int64_t beam_attention_workspace(const BeamAttentionArgs<Bf16>& args) {
  return workspace(args);
}
void beam_attention(const BeamAttentionArgs<float>& args, void* workspace,
                    void* stream) {
  run(args, workspace, stream);
}
void beam_attention(const BeamAttentionArgs<Bf16>& args, void* workspace,
                    void* stream) {
  run(args, workspace, stream);
}

void beam_seen(const BeamSeenArgs& args, void* stream) {
  constexpr const char* kName = "beam_seen";
  if (args.position == 0) return;
  beam_seen_kernel<<<static_cast<unsigned>(args.rows * args.heads),
                     kSeenThreads, 0, stream_of(stream)>>>(args);
  check_launch(kName);
}

}  // namespace reformer::kernels::cuda
