// The hash on tensor cores. x R is a small matmul whose columns are consumed
// by an argmax at once: it lives in registers alone. Products of bf16 are
// exact and sums are fp32; an fp32 vector is split into three bf16 parts,
// which together have all its digits, and takes three matmuls.
#include "reformer/kernels/lsh_buckets.h"

#include <cuda_bf16.h>

#include <algorithm>

#include "reformer/kernels/cuda/launch.h"

namespace reformer::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kColumns = 8;   // of one mma.m16n8k16
constexpr int kDepth = 32;    // elements that one 16-byte B fragment covers
constexpr int kMaxTiles = 8;  // 64 columns: half of the 128 plain buckets
// Of shared memory; a round of the most factors, of 32 each, needs no more.
constexpr int64_t kMaxRotationBytes = 64 * 1024;
static_assert(kMaxRotationBytes <= kLeastSharedMemory);

template <class T>
constexpr int kParts = 3;  // bf16 elements that make up a T
template <>
constexpr int kParts<Bf16> = 1;

struct Factor {
  int size;
  int first;  // column of the round's rotations
};

template <class T>
struct Problem {
  Rows<const T> vectors;
  const float* rotations;
  uint16_t* buckets;
  int64_t length;
  int heads;
  int rounds;
  int rounds_per_block;
  int rows_per_block;
  int row_blocks;
  int round_blocks;
  int d_head;
  int columns;
  int n_factors;
  Factor factors[kMaxFactors];
};

// c = a b, or c += a b. The order of the 16 elements that a matmul sums over
// is free, as long as A and B agree: lane 4 g + t of both holds elements 8t ..
// 8t + 7 of a run of 32, which is one 16-byte access; x and y make one matmul,
// z and w the next.
__device__ __forceinline__ void multiply(float (&c)[4], const float (&sum)[4],
                                         uint32_t a0, uint32_t a1, uint32_t a2,
                                         uint32_t a3, uint32_t b0,
                                         uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(sum[0]),
        "f"(sum[1]), "f"(sum[2]), "f"(sum[3]));
}

// Two matmuls: 32 elements.
__device__ __forceinline__ void multiply(float (&c)[4],
                                         const uint32_t (&a)[2][4],
                                         const uint4& b, bool first) {
  const float zero[4] = {};
  if (first) {
    multiply(c, zero, a[0][0], a[0][1], a[0][2], a[0][3], b.x, b.y);
  } else {
    multiply(c, c, a[0][0], a[0][1], a[0][2], a[0][3], b.x, b.y);
  }
  multiply(c, c, a[1][0], a[1][1], a[1][2], a[1][3], b.z, b.w);
}

// A's fragments from the same eight elements of rows g and g + 8. `zero` is 0,
// which the compiler must not know: these are then new values, in registers
// side by side as the instruction wants them. It would otherwise move the
// loaded ones there before every matmul, a third of all instructions.
__device__ __forceinline__ void arrange(const uint4& upper, const uint4& lower,
                                        uint32_t zero, uint32_t (&a)[2][4]) {
  a[0][0] = upper.x ^ zero;
  a[0][1] = lower.x ^ zero;
  a[0][2] = upper.y ^ zero;
  a[0][3] = lower.y ^ zero;
  a[1][0] = upper.z ^ zero;
  a[1][1] = lower.z ^ zero;
  a[1][2] = upper.w ^ zero;
  a[1][3] = lower.w ^ zero;
}

__device__ __forceinline__ uint32_t pair(__nv_bfloat16 a, __nv_bfloat16 b) {
  return uint32_t{__bfloat16_as_ushort(a)} | uint32_t{__bfloat16_as_ushort(b)}
                                                 << 16;
}

__device__ __forceinline__ uint4 packed(const __nv_bfloat16 (&x)[8]) {
  return {pair(x[0], x[1]), pair(x[2], x[3]), pair(x[4], x[5]),
          pair(x[6], x[7])};
}

// Eight elements of a vector, as parts; zeros where it has none.
__device__ __forceinline__ void load_parts(const __nv_bfloat16* x, bool there,
                                           uint4 (&parts)[1]) {
  parts[0] = there ? *reinterpret_cast<const uint4*>(x) : uint4{0, 0, 0, 0};
}

__device__ __forceinline__ void load_parts(const float* x, bool there,
                                           uint4 (&parts)[3]) {
  float rest[8] = {};
  if (there) {
    *reinterpret_cast<float4*>(rest) = *reinterpret_cast<const float4*>(x);
    *reinterpret_cast<float4*>(rest + 4) =
        *reinterpret_cast<const float4*>(x + 4);
  }
#pragma unroll
  for (int p = 0; p < 3; ++p) {
    __nv_bfloat16 part[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      part[e] = __float2bfloat16_rn(rest[e]);
      rest[e] -= __bfloat162float(part[e]);  // exact
    }
    parts[p] = packed(part);
  }
}

// An entry of -x R as one number, so that the largest of several is one
// instruction each: the digits of its magnitude, the last few of which make
// room for the column (the first is the largest), and lowest its sign bit,
// which of -x R says that x R is positive. Magnitudes that agree to 17 bits
// (19 where factors are 32 or less) are ties.
template <int kTiles>
struct Key {
  static constexpr uint32_t kColumnMask = kTiles * kColumns - 1;

  // What a lane puts in for each of its columns.
  __device__ static uint32_t code(int tile, int e, int lane) {
    return (kColumnMask - (tile * kColumns + lane % 4 * 2 + e)) << 1;
  }
  __device__ static uint32_t of(float entry, uint32_t code) {
    const uint32_t bits = __float_as_uint(entry);
    return (__funnelshift_l(bits, bits, 1) & ~(kColumnMask << 1)) | code;
  }
  // The argmax of [x R; -x R] for a factor of that size.
  __device__ static int digit(uint32_t key, int size) {
    const int column = static_cast<int>(kColumnMask - (key >> 1 & kColumnMask));
    // Of zeros alone the first column wins, and counts as positive.
    const bool negative = (key & 1) == 0 && key > 2 * kColumnMask + 1;
    return column + (negative ? size / 2 : 0);
  }
};

// The rows of a lane's group of four meet the columns of the three others: two
// rows become one, of which even groups of `lanes` keep a and odd ones b. Lane
// t is left with row t: g, g + 8 of the first 16 rows, then of the next.
__device__ __forceinline__ uint32_t halved(uint32_t a, uint32_t b, int lane,
                                           int lanes) {
  const bool odd = (lane & lanes) != 0;
  return max(odd ? b : a, __shfl_xor_sync(0xffffffffu, odd ? a : b, lanes));
}
__device__ __forceinline__ uint32_t over_columns(const uint32_t (&rows)[4],
                                                 int lane) {
  return halved(halved(rows[0], rows[1], lane, 1),
                halved(rows[2], rows[3], lane, 1), lane, 2);
}
__device__ __forceinline__ uint32_t over_columns(const uint32_t (&rows)[2],
                                                 int lane) {
  const uint32_t key = halved(rows[0], rows[1], lane, 1);
  return max(key, __shfl_xor_sync(0xffffffffu, key, 2));
}

// Shared memory [rounds, factors, tiles, d / 32, lanes] of B fragments, negated
// (Key says why). Columns beyond a factor's repeat its first one, which
// wins against them.
template <class T, int kTiles>
__device__ void load_rotations(const Problem<T>& problem, int head,
                               int first_round, int rounds, int depths,
                               uint4* fragments) {
  const int count = rounds * problem.n_factors * kTiles * depths * 32;
  for (int at = threadIdx.x; at < count; at += kThreads) {
    const int lane = at % 32;
    int rest = at / 32;
    const int depth = rest % depths;
    rest /= depths;
    const int tile = rest % kTiles;
    rest /= kTiles;
    const Factor factor = problem.factors[rest % problem.n_factors];
    const int round = first_round + rest / problem.n_factors;
    int column = tile * kColumns + lane / 4;
    if (column >= factor.size / 2) column = 0;
    const int row = depth * kDepth + lane % 4 * 8;
    const float* from =
        problem.rotations +
        ((int64_t{head} * problem.rounds + round) * problem.d_head + row) *
            problem.columns +
        factor.first + column;
    __nv_bfloat16 some[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const bool there = row + e < problem.d_head;
      some[e] = __float2bfloat16_rn(there ? -from[e * problem.columns] : 0.0f);
    }
    fragments[at] = packed(some);
  }
}

// A block hashes rows_per_block vectors of one (batch, head) in some rounds:
// it reads these rounds' rotations once, every vector once, and writes every
// bucket once. A warp takes kRowTiles * 16 vectors at a time.
template <class T, int kDepths, int kTiles, int kRowTiles>
__global__ __launch_bounds__(
    kThreads, kDepths* kRowTiles* kParts<T> <= 4 && kTiles <= 2 ? 3 : 1)  //
    void lsh_buckets_kernel(const __grid_constant__ Problem<T> problem) {
  extern __shared__ uint4 fragments[];
  constexpr int kRows = kRowTiles * 16;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  int64_t block = blockIdx.x;
  const int64_t row_block = block % problem.row_blocks;
  block /= problem.row_blocks;
  const int first_round =
      static_cast<int>(block % problem.round_blocks) * problem.rounds_per_block;
  const int64_t row_head = block / problem.round_blocks;
  const int head = static_cast<int>(row_head % problem.heads);
  const int rounds =
      min(problem.rounds_per_block, problem.rounds - first_round);
  uint32_t codes[kTiles][2];
#pragma unroll
  for (int at = 0; at < kTiles * 2; ++at) {
    codes[at / 2][at % 2] = Key<kTiles>::code(at / 2, at % 2, lane);
  }

  load_rotations<T, kTiles>(problem, head, first_round, rounds, kDepths,
                            fragments);
  __syncthreads();

  const T* vectors = problem.vectors.head(row_head / problem.heads, head);
  const int64_t begin = row_block * problem.rows_per_block;
  const auto zero = static_cast<uint32_t>(problem.length >> 32);
  const int64_t end = min(begin + problem.rows_per_block, problem.length);
  for (int64_t i = begin + warp * kRows; i < end; i += kWarps * kRows) {
    uint32_t a[kRowTiles][kDepths][kParts<T>][2][4];
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
      uint4 rows[2][kDepths][kParts<T>];
#pragma unroll
      for (int lower = 0; lower < 2; ++lower) {
        const int64_t row = i + m * 16 + lower * 8 + lane / 4;
        const T* vector = vectors + row * problem.vectors.row_stride;
#pragma unroll
        for (int depth = 0; depth < kDepths; ++depth) {
          const int element = depth * kDepth + lane % 4 * 8;
          load_parts(vector + element, row < end && element < problem.d_head,
                     rows[lower][depth]);
        }
      }
#pragma unroll
      for (int depth = 0; depth < kDepths; ++depth) {
#pragma unroll
        for (int part = 0; part < kParts<T>; ++part) {
          arrange(rows[0][depth][part], rows[1][depth][part], zero,
                  a[m][depth][part]);
        }
      }
    }

    const uint4* b = fragments + lane;
    for (int round = 0; round < rounds; ++round) {
      int bucket = 0;
      for (int f = 0; f < problem.n_factors; ++f) {
        float c[kRowTiles][kTiles][4];
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
          for (int depth = 0; depth < kDepths; ++depth, b += 32) {
            const uint4 columns = *b;
#pragma unroll
            for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
              for (int p = kParts<T> - 1; p >= 0; --p) {
                multiply(c[m][tile], a[m][depth][p], columns,
                         depth == 0 && p == kParts<T> - 1);
              }
            }
          }
        }
        uint32_t rows[kRowTiles * 2] = {};
#pragma unroll
        for (int row = 0; row < kRowTiles * 2; ++row) {
#pragma unroll
          for (int tile = 0; tile < kTiles; ++tile) {
            const float* entries = &c[row / 2][tile][row % 2 * 2];
            rows[row] = __vimax3_u32(
                rows[row], Key<kTiles>::of(entries[0], codes[tile][0]),
                Key<kTiles>::of(entries[1], codes[tile][1]));
          }
        }
        const int size = problem.factors[f].size;
        bucket =
            bucket * size + Key<kTiles>::digit(over_columns(rows, lane), size);
      }
      const int own = lane % (kRowTiles * 2);
      const int64_t row = i + own * 8 + lane / 4;
      if (lane % 4 == own && row < end) {
        problem.buckets[(row_head * problem.rounds + first_round + round) *
                            problem.length +
                        row] = static_cast<uint16_t>(bucket);
      }
    }
  }
}

template <class T, int kDepths, int kTiles>
void launch(const LshBucketsArgs<T>& args, void* stream) {
  constexpr const char* kName = "lsh_buckets";
  // Three parts of 32 rows, or 64 columns of them, would not fit in registers.
  constexpr int kRowTiles = kParts<T> == 1 && kTiles <= 4 ? 2 : 1;
  Problem<T> problem{};
  problem.vectors = args.vectors;
  problem.rotations = args.rotations;
  problem.buckets = args.buckets;
  problem.length = args.length;
  problem.heads = static_cast<int>(args.heads);
  problem.rounds = static_cast<int>(args.rounds);
  problem.d_head = static_cast<int>(args.d_head);
  problem.columns = static_cast<int>(args.columns);
  problem.n_factors = static_cast<int>(args.n_factors);
  int first = 0;
  for (int f = 0; f < problem.n_factors; ++f) {
    problem.factors[f] = {static_cast<int>(args.factors[f]), first};
    first += problem.factors[f].size / 2;
  }

  const int64_t round_bytes =
      args.n_factors * kTiles * kDepths * 32 * int64_t{sizeof(uint4)};
  constexpr int64_t kStep = kWarps * kRowTiles * 16;
  // Few vectors: loading rotations is all there is to do, and all
  // multiprocessors should.
  const int64_t most =
      args.length <= kStep
          ? ceil_div(args.batch * args.heads * args.rounds, multiprocessors())
          : args.rounds;
  problem.rounds_per_block = static_cast<int>(
      std::clamp<int64_t>(kMaxRotationBytes / round_bytes, 1, most));
  problem.round_blocks =
      static_cast<int>(ceil_div(args.rounds, problem.rounds_per_block));
  // Not more blocks than fill the GPU: each loads the rotations anew.
  const int64_t others = args.batch * args.heads * problem.round_blocks;
  const int64_t wanted = ceil_div(3 * multiprocessors(), others);
  problem.rows_per_block =
      static_cast<int>(ceil_div(ceil_div(args.length, wanted), kStep) * kStep);
  problem.row_blocks =
      static_cast<int>(ceil_div(args.length, problem.rows_per_block));

  auto* kernel = lsh_buckets_kernel<T, kDepths, kTiles, kRowTiles>;
  const int64_t bytes = problem.rounds_per_block * round_bytes;
  allow_shared_memory(kernel, bytes, kName);
  kernel<<<grid_for(others * problem.row_blocks, 1, kName), kThreads,
           static_cast<size_t>(bytes), stream_of(stream)>>>(problem);
  check_launch(kName);
}

template <class T, int kDepths>
void launch_for_columns(const LshBucketsArgs<T>& args, void* stream) {
  const int64_t largest =
      *std::max_element(args.factors, args.factors + args.n_factors);
  const int64_t tiles = ceil_div(largest / 2, kColumns);
  if (tiles <= 1) return launch<T, kDepths, 1>(args, stream);
  if (tiles <= 2) return launch<T, kDepths, 2>(args, stream);
  if (tiles <= 4) return launch<T, kDepths, 4>(args, stream);
  require(tiles <= kMaxTiles, "lsh_buckets: a factor of at most ",
          kMaxTiles * kColumns * 2, " is required, got ", largest);
  launch<T, kDepths, kMaxTiles>(args, stream);
}

template <class T>
void hash(const LshBucketsArgs<T>& args, void* stream) {
  switch (ceil_div(args.d_head, kDepth)) {
    case 1:
      return launch_for_columns<T, 1>(args, stream);
    case 2:
      return launch_for_columns<T, 2>(args, stream);
    case 3:
      return launch_for_columns<T, 3>(args, stream);
    case 4:
      return launch_for_columns<T, 4>(args, stream);
    default:
      require(false, "lsh_buckets: d_head of at most 128 is required");
  }
}

}  // namespace

void lsh_buckets(const LshBucketsArgs<float>& args, void* stream) {
  hash(args, stream);
}
void lsh_buckets(const LshBucketsArgs<Bf16>& args, void* stream) {
  hash(args, stream);
}

}  // namespace reformer::kernels::cuda
