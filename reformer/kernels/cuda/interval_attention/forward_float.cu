// Interval attention in fp32: plain arithmetic, no tensor cores, no workspace.
//
// A warp owns one row and walks through all rounds, 32 keys (or queries) at a
// time: a lane computes the score of one of them, then each lane adds up four
// columns of the weighted rows. It is the GPU's reference in full precision;
// training runs in bf16.
#include <cmath>

#include "reformer/kernels/cuda/interval_attention/launch.cuh"
#include "reformer/kernels/cuda/interval_attention/rows.cuh"
#include "reformer/kernels/cuda/interval_attention/successors.cuh"
#include "reformer/kernels/cuda/reduce.cuh"

namespace reformer::kernels::cuda {
namespace {

constexpr int kWarps = 4;  // rows of a block

__device__ float4 at4(const float* row, int c) {
  return *reinterpret_cast<const float4*>(row + c);
}

// In four sums, which round less than one.
__device__ float dot(const float* a, const float* b, int d) {
  float4 sum = {0, 0, 0, 0};
  for (int c = 0; c < d; c += 4) {
    const float4 x = at4(a, c);
    const float4 y = at4(b, c);
    sum.x += x.x * y.x;
    sum.y += x.y * y.y;
    sum.z += x.z * y.z;
    sum.w += x.w * y.w;
  }
  return (sum.x + sum.y) + (sum.z + sum.w);
}

__device__ float inverse_norm(const float* row, int d) {
  const float square = dot(row, row, d);
  if (!(square < 1e30f)) {
    double wide = 0;
    for (int c = 0; c < d; ++c) wide += double(row[c]) * row[c];
    return static_cast<float>(1 / sqrt(wide));
  }
  const float norm = sqrtf(square);
  return norm <= static_cast<float>(kSmallestKeyNorm) ? 0 : 1 / norm;
}

// Four columns of a row in each lane.
__device__ void add_row(float4& sum, float weight, const float* row, int d,
                        int lane) {
  if (4 * lane >= d) return;
  const float4 x = at4(row, 4 * lane);
  sum.x += weight * x.x;
  sum.y += weight * x.y;
  sum.z += weight * x.z;
  sum.w += weight * x.w;
}

// One (batch, head) and the row that this warp owns.
struct FloatHead {
  __device__ FloatHead(const IntervalAttentionArgs<float>& args, int64_t b,
                       int64_t h)
      : q(head_of(args.q, b, h)),
        k(args.k.data ? head_of(args.k, b, h) : q),
        v(head_of(args.v, b, h)),
        q_stride(args.q.row_stride),
        k_stride(args.k.data ? args.k.row_stride : q_stride),
        v_stride(args.v.row_stride),
        order(args.rounds.order + b * args.rounds.order_batch_stride +
              h * args.rounds.order_head_stride),
        place(args.rounds.place + b * args.rounds.place_batch_stride +
              h * args.rounds.place_head_stride),
        interval(reinterpret_cast<const int2*>(
            args.rounds.interval + b * args.rounds.interval_batch_stride +
            h * args.rounds.interval_head_stride)),
        mask(args.mask ? args.mask + b * args.length : nullptr),
        offered(args.successors, b, h, args.length),
        softmax(args.softmax + (b * args.heads + h) * args.length * 2),
        rounds(static_cast<int>(args.rounds.rounds)),
        length(static_cast<int>(args.length)),
        d(static_cast<int>(args.d_head)),
        shared(args.k.data == nullptr) {}

  // Of key j's scores.
  __device__ float scale(int j) const {
    return shared ? inverse_norm(k + j * k_stride, d)
                  : static_cast<float>(1 / sqrt(static_cast<double>(d)));
  }

  // Whether round r is the first in which query i attends to key j, which its
  // interval there contains.
  __device__ bool first_met(int i, int j, int r) const {
    if (shared && i == j) return false;
    for (int e = 0; e < r; ++e) {
      const int2 old = interval[int64_t{i} * rounds + e];
      const int there = place[int64_t{j} * rounds + e];
      if (there >= old.x && there < old.y) return false;
    }
    return true;
  }

  __device__ bool is_padded(int i) const { return mask && !mask[i]; }
  __device__ bool is_lone(int i) const {
    return !is_padded(i) && softmax[2 * int64_t{i} + 1] == 0;
  }

  // The value that key j offers.
  __device__ const float* value(int j) const {
    return v + offered.row(j) * v_stride;
  }

  const float* q;
  const float* k;
  const float* v;
  int64_t q_stride;
  int64_t k_stride;
  int64_t v_stride;
  const int32_t* order;  // [rounds, length]
  const int32_t* place;  // [length, rounds]
  const int2* interval;  // [length, rounds]
  const bool* mask;
  OfferedValues offered;
  float* softmax;  // [length, 2]
  int rounds;
  int length;
  int d;
  bool shared;
};

// Calls body(j, valid) for all keys j of query i, a lane each; the whole warp
// calls it.
template <class Body>
__device__ void for_each_key(const FloatHead& head, int i, int lane,
                             const Body& body) {
  for (int r = 0; r < head.rounds; ++r) {
    const int2 own = head.interval[int64_t{i} * head.rounds + r];
    for (int base = own.x; base < own.y; base += 32) {
      const int s = base + lane;
      const int j = s < own.y ? head.order[int64_t{r} * head.length + s] : i;
      body(j, s < own.y && head.first_met(i, j, r));
    }
  }
}

// Adds weight_u * rows[index_u] over the lanes u that have a weight.
__device__ void add_weighted(float4& sum, float weight, int index, bool valid,
                             const float* rows, int64_t stride, int d,
                             int lane) {
  unsigned left = __ballot_sync(kAllLanes, valid);
  for (; left != 0; left &= left - 1) {
    const int u = __ffs(left) - 1;
    const float w = __shfl_sync(kAllLanes, weight, u);
    const int j = __shfl_sync(kAllLanes, index, u);
    add_row(sum, w, rows + j * stride, d, lane);
  }
}

__device__ void store_row(float* row, const float4& x, int d, int lane) {
  if (4 * lane < d) *reinterpret_cast<float4*>(row + 4 * lane) = x;
}

__global__ void __launch_bounds__(kWarps * 32)
    float_forward(const __grid_constant__ IntervalAttentionArgs<float> args) {
  const int64_t b = blockIdx.y / args.heads;
  const int64_t h = blockIdx.y % args.heads;
  const FloatHead head(args, b, h);
  const int lane = threadIdx.x % 32;
  const int s = blockIdx.x * kWarps + threadIdx.x / 32;
  if (s >= head.length) return;
  const int i = head.order[s];
  const float* q = head.q + i * head.q_stride;
  float largest = -kInfinity;
  float sum = 0;
  float4 o = {0, 0, 0, 0};
  for_each_key(head, i, lane, [&](int j, bool valid) {
    float score = -kInfinity;
    if (valid)
      score = dot(q, head.k + j * head.k_stride, head.d) * head.scale(j);
    const float top = fmaxf(largest, warp_max(score));
    if (top == -kInfinity) return;
    const float factor = expf(largest - top);
    const float weight = valid ? expf(score - top) : 0;
    largest = top;
    sum = sum * factor + warp_sum(weight);
    o = {o.x * factor, o.y * factor, o.z * factor, o.w * factor};
    add_weighted(o, weight, head.offered.row(j), valid, head.v, head.v_stride,
                 head.d, lane);
  });
  if (sum != 0) {
    o = {o.x / sum, o.y / sum, o.z / sum, o.w / sum};
  } else if (!head.is_padded(i)) {
    add_row(o, 1, head.v + i * head.v_stride, head.d, lane);
  }
  store_row(head_of(args.output, b, h) + i * args.output.row_stride, o, head.d,
            lane);
  if (lane != 0) return;
  head.softmax[2 * int64_t{i}] = largest;
  head.softmax[2 * int64_t{i} + 1] = sum;
  args.lse[int64_t{blockIdx.y} * head.length + i] =
      sum != 0 ? largest + logf(sum) : -kInfinity;
}

// The first s of [0, length) for which test(s), or length; test never turns
// false again.
template <class Test>
__device__ int first_place(int length, int lane, const Test& test) {
  int low = 0;
  int high = length;
  while (low < high) {
    const int step = (high - low + 31) / 32;
    const int s = low + lane * step;
    const unsigned found = __ballot_sync(kAllLanes, s >= high || test(s));
    const int before = found == 0 ? 31 : __ffs(found) - 2;
    if (before < 0) return low;
    high = min(high, low + (before + 1) * step);
    low += before * step + 1;
  }
  return low;
}

struct FloatGrad {
  __device__ FloatGrad(const IntervalAttentionGradArgs<float>& args, int64_t b,
                       int64_t h)
      : head(args.forward, b, h),
        output(head_of(args.forward.output, b, h)),
        d_output(head_of(args.d_output, b, h)),
        output_stride(args.forward.output.row_stride),
        d_output_stride(args.d_output.row_stride) {}

  __device__ float weight(int i, float score) const {
    const float largest = head.softmax[2 * int64_t{i}];
    return expf(score - largest) / head.softmax[2 * int64_t{i} + 1];
  }
  __device__ float delta(int i) const {
    return dot(d_output + i * d_output_stride, output + i * output_stride,
               head.d);
  }

  FloatHead head;
  const float* output;
  const float* d_output;
  int64_t output_stride;
  int64_t d_output_stride;
};

// d_q, but for what it owes as a key.
__global__ void __launch_bounds__(kWarps * 32) float_d_queries(
    const __grid_constant__ IntervalAttentionGradArgs<float> args) {
  const int64_t b = blockIdx.y / args.forward.heads;
  const int64_t h = blockIdx.y % args.forward.heads;
  const FloatGrad grad(args, b, h);
  const FloatHead& head = grad.head;
  const int lane = threadIdx.x % 32;
  const int s = blockIdx.x * kWarps + threadIdx.x / 32;
  if (s >= head.length) return;
  const int i = head.order[s];
  const float* q = head.q + i * head.q_stride;
  const float* d_output = grad.d_output + i * grad.d_output_stride;
  const float delta = head.is_padded(i) ? 0 : grad.delta(i);
  float4 d_q = {0, 0, 0, 0};
  for_each_key(head, i, lane, [&](int j, bool valid) {
    float d_score = 0;
    if (valid) {
      const float scale = head.scale(j);
      const float score = dot(q, head.k + j * head.k_stride, head.d) * scale;
      const float dp = dot(d_output, head.value(j), head.d);
      d_score = grad.weight(i, score) * (dp - delta) * scale;
    }
    add_weighted(d_q, d_score, j, valid, head.k, head.k_stride, head.d, lane);
  });
  store_row(head_of(args.d_q, b, h) + i * args.d_q.row_stride, d_q, head.d,
            lane);
}

// d_v and d_k; shared keys add theirs to d_q, which float_d_queries wrote.
__global__ void __launch_bounds__(kWarps * 32) float_d_keys(
    const __grid_constant__ IntervalAttentionGradArgs<float> args) {
  const int64_t b = blockIdx.y / args.forward.heads;
  const int64_t h = blockIdx.y % args.forward.heads;
  const FloatGrad grad(args, b, h);
  const FloatHead& head = grad.head;
  const int lane = threadIdx.x % 32;
  const int s = blockIdx.x * kWarps + threadIdx.x / 32;
  if (s >= head.length) return;
  const int j = head.order[s];
  const float* k = head.k + j * head.k_stride;
  const float* v = head.value(j);
  const float scale = head.is_padded(j) ? 0 : head.scale(j);
  float4 d_k = {0, 0, 0, 0};
  float4 d_v = {0, 0, 0, 0};
  for (int r = 0; r < head.rounds && !head.is_padded(j); ++r) {
    const int32_t* order = head.order + int64_t{r} * head.length;
    const int here = head.place[int64_t{j} * head.rounds + r];
    const auto interval_at = [&](int at) {
      return head.interval[int64_t{order[at]} * head.rounds + r];
    };
    const int begin = first_place(
        head.length, lane, [&](int at) { return interval_at(at).y > here; });
    const int end = first_place(
        head.length, lane, [&](int at) { return interval_at(at).x > here; });
    for (int base = begin; base < end; base += 32) {
      const int at = base + lane;
      const int i = at < end ? order[at] : j;
      const bool valid =
          at < end && interval_at(at).y > here && head.first_met(i, j, r);
      float p = 0;
      float d_score = 0;
      if (valid) {
        const float score = dot(head.q + i * head.q_stride, k, head.d) * scale;
        const float dp =
            dot(grad.d_output + i * grad.d_output_stride, v, head.d);
        p = grad.weight(i, score);
        d_score = p * (dp - grad.delta(i));
      }
      add_weighted(d_v, p, i, valid, grad.d_output, grad.d_output_stride,
                   head.d, lane);
      add_weighted(d_k, d_score, i, valid, head.q, head.q_stride, head.d, lane);
    }
  }
  // The first of successors, whom nobody offers, is left to end_gradients.
  const int to = head.offered.gradient_row(j);
  if (head.is_lone(to) && !(head.offered.successors && to <= j)) {
    add_row(d_v, 1, grad.d_output + to * grad.d_output_stride, head.d, lane);
  }
  store_row(head_of(args.d_v, b, h) + to * args.d_v.row_stride, d_v, head.d,
            lane);
  if (!head.shared) {
    d_k = {d_k.x * scale, d_k.y * scale, d_k.z * scale, d_k.w * scale};
    store_row(head_of(args.d_k, b, h) + j * args.d_k.row_stride, d_k, head.d,
              lane);
    return;
  }
  float* d_q = head_of(args.d_q, b, h) + j * args.d_q.row_stride;
  float4 sum = {0, 0, 0, 0};
  float4 key = {0, 0, 0, 0};
  add_row(sum, 1, d_q, head.d, lane);
  if (!head.is_padded(j)) add_row(key, scale, k, head.d, lane);
  const float along = warp_sum((key.x * d_k.x + key.y * d_k.y) +
                               (key.z * d_k.z + key.w * d_k.w));
  sum.x += (d_k.x - key.x * along) * scale;
  sum.y += (d_k.y - key.y * along) * scale;
  sum.z += (d_k.z - key.z * along) * scale;
  sum.w += (d_k.w - key.w * along) * scale;
  store_row(d_q, sum, head.d, lane);
}

dim3 grid_of(const IntervalAttentionArgs<float>& args) {
  return {static_cast<unsigned>((args.length + kWarps - 1) / kWarps),
          static_cast<unsigned>(args.batch * args.heads)};
}

}  // namespace

void interval_attention(const IntervalAttentionArgs<float>& args,
                        void* stream) {
  require_supported(args);
  float_forward<<<grid_of(args), kWarps * 32, 0, stream_of(stream)>>>(args);
  check_launch("interval_attention");
}

void interval_attention_grad(const IntervalAttentionGradArgs<float>& args,
                             void* stream) {
  require_supported(args.forward);
  const dim3 grid = grid_of(args.forward);
  const auto on = stream_of(stream);
  float_d_queries<<<grid, kWarps * 32, 0, on>>>(args);
  check_launch("interval_attention_grad: d_q");
  float_d_keys<<<grid, kWarps * 32, 0, on>>>(args);
  check_launch("interval_attention_grad: d_k, d_v");
  end_gradients(args, on);
}

}  // namespace reformer::kernels::cuda
