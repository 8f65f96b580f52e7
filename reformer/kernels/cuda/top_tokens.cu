#include "reformer/kernels/top_tokens.h"

#include "reformer/base/errors.h"
#include "reformer/kernels/cuda/launch.h"

// A block owns a row. It reads it once for the maxima and sums of exponentials
// of its threads; the k-th largest of the threads' maxima is a bound: at least
// k logits are not below it, and in practice few more. Those are found in a
// second reading, which the level-2 cache serves, and ranked among each other.
namespace reformer::kernels::cuda {
namespace {

constexpr int kTopThreads = 256;
constexpr int kMaxFound = 2048;
static_assert(kMaxTopTokens <= kTopThreads);

struct MaxAndSum {
  float max = -INFINITY;
  float sum = 0;  // of exp(logit - max)

  // NaN stays in the sum.
  __device__ void add(float max2, float sum2) {
    const float larger = fmaxf(max, max2);
    if (larger == -INFINITY) {
      sum += sum2;
      return;
    }
    sum = sum * expf(max - larger) + sum2 * expf(max2 - larger);
    max = larger;
  }
};

// Of all threads, in an order that never changes.
__device__ MaxAndSum block_total(MaxAndSum own) {
  __shared__ float maxima[kTopThreads / 32];
  __shared__ float sums[kTopThreads / 32];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const float max = __shfl_xor_sync(0xffffffff, own.max, step);
    const float sum = __shfl_xor_sync(0xffffffff, own.sum, step);
    own.add(max, sum);
  }
  if (threadIdx.x % 32 == 0) {
    maxima[threadIdx.x / 32] = own.max;
    sums[threadIdx.x / 32] = own.sum;
  }
  __syncthreads();
  MaxAndSum total;
  for (int warp = 0; warp < kTopThreads / 32; ++warp) {
    total.add(maxima[warp], sums[warp]);
  }
  return total;
}

__device__ bool comes_before(float a, int token_a, float b, int token_b) {
  return a > b || (a == b && token_a < token_b);
}

// The k-th largest of the threads' maxima.
__device__ float bound_of(float own, int k) {
  __shared__ float maxima[kTopThreads];
  __shared__ float bound;
  const int me = static_cast<int>(threadIdx.x);
  maxima[me] = own;
  __syncthreads();
  int rank = 0;
  for (int other = 0; other < kTopThreads; ++other) {
    rank += comes_before(maxima[other], other, own, me) ? 1 : 0;
  }
  if (rank == k - 1) bound = own;
  __syncthreads();
  return bound;
}

// Where very many logits are equal: k times the first after the one before.
__device__ void select_one_by_one(const TopTokensArgs& args,
                                  const float* logits, double log_sum,
                                  double* result) {
  __shared__ float values[kTopThreads];
  __shared__ int tokens[kTopThreads];
  const int me = static_cast<int>(threadIdx.x);
  float value = INFINITY;  // the one before
  int token = -1;
  for (int64_t rank = 0; rank < args.k; ++rank) {
    float best = -INFINITY;
    int best_token = INT32_MAX;
    for (int i = me; i < args.columns; i += kTopThreads) {
      if (comes_before(value, token, logits[i], i) &&
          comes_before(logits[i], i, best, best_token)) {
        best = logits[i];
        best_token = i;
      }
    }
    values[me] = best;
    tokens[me] = best_token;
    __syncthreads();
    for (int other = 0; other < kTopThreads; ++other) {
      if (comes_before(values[other], tokens[other], best, best_token)) {
        best = values[other];
        best_token = tokens[other];
      }
    }
    __syncthreads();
    value = best;
    token = best_token;
    if (me == 0) {
      result[rank] = double(value) - log_sum;
      result[args.k + rank] = double(token == INT32_MAX ? 0 : token);
    }
  }
}

__global__ void __launch_bounds__(kTopThreads)
    top_tokens_kernel(const __grid_constant__ TopTokensArgs args) {
  __shared__ float found[kMaxFound];
  __shared__ int found_tokens[kMaxFound];
  __shared__ int n_found;
  const int me = static_cast<int>(threadIdx.x);
  const float* logits = args.logits + blockIdx.x * args.stride;
  double* result = args.result + blockIdx.x * (2 * args.k + 1);

  MaxAndSum own;
  for (int i = me; i < args.columns; i += kTopThreads) {
    const float x = logits[i];
    if (x > own.max) {
      own.sum = own.sum * expf(own.max - x) + 1;
      own.max = x;
    } else if (x != -INFINITY) {  // NaN comes here
      own.sum += own.max == -INFINITY ? x - x : expf(x - own.max);
    }
  }
  if (me == 0) n_found = 0;
  const MaxAndSum total = block_total(own);
  const double log_sum = double(total.max) + log(double(total.sum));
  for (int rank = me; rank < args.k; rank += kTopThreads) {
    result[rank] = -INFINITY - log_sum;  // NaN of NaN: else it is overwritten
    result[args.k + rank] = 0;
  }
  if (me == 0) result[2 * args.k] = double(logits[args.besides]) - log_sum;

  const float bound = bound_of(own.max, static_cast<int>(args.k));
  for (int i = me; i < args.columns; i += kTopThreads) {
    const float x = logits[i];
    if (!(x >= bound)) continue;
    const int place = atomicAdd(&n_found, 1);
    if (place < kMaxFound) {
      found[place] = x;
      found_tokens[place] = i;
    }
  }
  __syncthreads();
  if (n_found > kMaxFound) {
    return select_one_by_one(args, logits, log_sum, result);
  }
  for (int i = me; i < n_found; i += kTopThreads) {
    int64_t rank = 0;
    for (int other = 0; other < n_found; ++other) {
      rank += comes_before(found[other], found_tokens[other], found[i],
                           found_tokens[i])
                  ? 1
                  : 0;
    }
    if (rank >= args.k) continue;
    result[rank] = double(found[i]) - log_sum;
    result[args.k + rank] = double(found_tokens[i]);
  }
}

}  // namespace

void top_tokens(const TopTokensArgs& args, void* stream) {
  constexpr const char* kName = "top_tokens";
  require(args.columns < (int64_t{1} << 30) && args.k <= kMaxTopTokens, kName,
          ": a vocabulary of less than 2^30 and up to ", kMaxTopTokens,
          " tokens are possible, got ", args.columns, " and ", args.k);
  top_tokens_kernel<<<static_cast<unsigned>(args.rows), kTopThreads, 0,
                      stream_of(stream)>>>(args);
  check_launch(kName);
}

}  // namespace reformer::kernels::cuda
