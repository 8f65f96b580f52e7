#include "reformer/kernels/attend_next.h"

#include "reformer/kernels/cuda/interval_attention/running_softmax.cuh"
#include "reformer/kernels/cuda/key_value_rows.cuh"
#include "reformer/kernels/cuda/launch.h"
#include "reformer/kernels/cuda/next_positions.cuh"

// A block owns a part of what one (row, head) sees: a piece of the range, or of
// one round's ring. It reads every key and value of it once, 16 lanes a row, 64
// rows at a time, and leaves a softmax of its own in the workspace. The last
// block of a (row, head) to arrive adds these up in the order of parts, whoever
// it is, and lets the position join the history, which nobody reads any more.
namespace reformer::kernels::cuda {
namespace {

constexpr int kUnrolled = 4;  // rows that a group of lanes has under way
constexpr int kSteps = kTile / (kGroups * kUnrolled);

template <class T>
__device__ void attend_tile(const AttendNextArgs<T>& args, const NextHead& own,
                            const int (&seen)[kTile], const float (&q)[8],
                            float added, RunningSoftmax& softmax) {
  const auto pages = args.pages.row(own.row);
  const int column = threadIdx.x % kGroupLanes * 8;
  const bool inside = column < args.d_head;
  const T* input_value = args.v.head(own.row, own.head) + column;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    int position[kUnrolled];
    Eight<T> key[kUnrolled] = {};
    Eight<T> value[kUnrolled] = {};
#pragma unroll
    for (int u = 0; u < kUnrolled; ++u) {
      position[u] =
          seen[(step * kUnrolled + u) * kGroups + threadIdx.x / kGroupLanes];
      if (position[u] < 0 || !inside) continue;
      const T* row = pages.key(own.head, position[u]) + column;
      key[u] = load_eight(row);
      // The last one's successor is the input: nobody has written it yet.
      const bool from_input = position[u] == own.last_offers_input;
      value[u] = load_eight(from_input ? input_value : row + pages.shape.width);
    }
    float scores[kUnrolled];
#pragma unroll
    for (int u = 0; u < kUnrolled; ++u) {
      scores[u] = group_dot(q, key[u]) + added;
      if (position[u] < 0) scores[u] = -INFINITY;
    }
    softmax.add(scores, value);
  }
}

// The query's own key, which full attention sees, straight from the input.
template <class T>
__device__ void attend_itself(const AttendNextArgs<T>& args,
                              const NextHead& own, const float (&q)[8],
                              RunningSoftmax& softmax) {
  const int column = threadIdx.x % kGroupLanes * 8;
  Eight<T> key[1] = {};
  Eight<T> value[1] = {};
  if (column < args.d_head) {
    key[0] = load_eight(args.k.head(own.row, own.head) + column);
    value[0] = load_eight(args.v.head(own.row, own.head) + column);
  }
  float score[1] = {group_dot(q, key[0])};
  if (threadIdx.x >= kGroupLanes) score[0] = -INFINITY;  // one group's
  softmax.add(score, value);
}

template <class T>
__device__ void join_pages(const AttendNextArgs<T>& args, const NextHead& own) {
  const auto pages = args.pages.row(own.row);
  const int lane = threadIdx.x % 32;
  const int d = static_cast<int>(args.d_head);
  write_key(args.k.head(own.row, own.head), args.unit_keys, d, lane, pages,
            own.head, own.position);
  const bool successors = own.head < args.successor_heads;
  const int64_t beside = successors ? own.position - 1 : own.position;
  if (beside >= 0) {
    write_value(args.v.head(own.row, own.head), d, lane, pages, own.head,
                beside);
  }
  for (int64_t round = lane; round < pages.shape.rounds; round += 32) {
    pages.buckets(own.head, own.position)[round] =
        args.buckets[own.row_head * pages.shape.rounds + round];
  }
}

__device__ void join_history(const BucketHistory& history,
                             const uint16_t* buckets, const NextHead& own) {
  for (int64_t r = threadIdx.x; r < history.rounds; r += kThreads) {
    const int64_t round = own.row_head * history.rounds + r;
    const int64_t bucket = history.bucket(round, buckets[round]);
    const int32_t count = history.counts[bucket];
    history.members[bucket * history.window + count % history.window] =
        static_cast<int32_t>(own.position);
    history.counts[bucket] = count + 1;
  }
}

// Whether this block is the last of `parts` to come here with what it wrote.
__device__ bool arrives_last(int32_t* arrivals, int parts) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(arrivals, 1) == parts - 1;
    if (last) *arrivals = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    attend_next_kernel(const __grid_constant__ AttendNextArgs<T> args,
                       const __grid_constant__ NextParts parts,
                       float* partial) {
  __shared__ int seen[kTile];
  const NextHead own(args);
  const int part = static_cast<int>(blockIdx.x);
  if (parts.unused(own, part)) return;

  const int column = threadIdx.x % kGroupLanes * 8;
  float q[8] = {};
  if (column < args.d_head) {
    unpack(load_eight(args.q.head(own.row, own.head) + column), q);
  }
#pragma unroll
  for (float& x : q) x *= float(args.scale);

  RunningSoftmax softmax;
  const SeenPart<T> piece(args, own, parts, part);
  const float added = piece.in_every_group();
  for (int64_t first = piece.begin; first < piece.end; first += kTile) {
    if (threadIdx.x < kTile) {
      seen[threadIdx.x] = piece.position(first + threadIdx.x);
    }
    __syncthreads();
    attend_tile(args, own, seen, q, added, softmax);
    __syncthreads();
  }
  if (part == 0) {
    if (args.earlier.itself) attend_itself(args, own, q, softmax);
    if (threadIdx.x < 32) join_pages(args, own);
  }

  const int64_t stride = args.d_head + 2;
  float* sums = partial + own.row_head * parts.launched() * stride;
  write_block_sum(softmax, static_cast<int>(args.d_head), sums + part * stride);
  if (!arrives_last(args.arrivals + own.row_head, parts.of(own))) return;
  if (threadIdx.x < args.d_head) {
    const MergedColumn found =
        sum_of_parts(sums, stride, parts, own, static_cast<int>(threadIdx.x));
    const T value = args.v.head(own.row, own.head)[threadIdx.x];
    const bool nobody = found.max == -INFINITY;
    store(args.output.head(own.row, own.head) + threadIdx.x,
          nobody ? to_float(value) : found.value / found.sum);
  }
  join_history(args.history, args.buckets, own);
}

template <class T>
void run(const AttendNextArgs<T>& args, void* workspace, void* stream) {
  constexpr const char* kName = "attend_next";
  const NextParts parts(args.earlier, args.history, args.longest);
  const int64_t heads = args.batch * args.heads;
  require(heads <= 65535 && args.history.rounds <= kMaxNextRounds, kName,
          ": at most 65535 heads of all rows and ", kMaxNextRounds,
          " rounds are possible, got ", heads, " and ", args.history.rounds);
  const dim3 grid(static_cast<unsigned>(parts.launched()),
                  static_cast<unsigned>(heads));
  attend_next_kernel<<<grid, kThreads, 0, stream_of(stream)>>>(
      args, parts, static_cast<float*>(workspace));
  check_launch(kName);
}

template <class T>
int64_t workspace(const AttendNextArgs<T>& args) {
  const NextParts parts(args.earlier, args.history, args.longest);
  return args.batch * args.heads * parts.launched() * (args.d_head + 2) *
         int64_t{sizeof(float)};
}

}  // namespace

int64_t attend_next_workspace(const AttendNextArgs<float>& args) {
  return workspace(args);
}
int64_t attend_next_workspace(const AttendNextArgs<Bf16>& args) {
  return workspace(args);
}
void attend_next(const AttendNextArgs<float>& args, void* workspace,
                 void* stream) {
  run(args, workspace, stream);
}
void attend_next(const AttendNextArgs<Bf16>& args, void* workspace,
                 void* stream) {
  run(args, workspace, stream);
}

}  // namespace reformer::kernels::cuda
