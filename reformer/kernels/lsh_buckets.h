// Angular LSH: which bucket each vector falls into (paper Sec. 2, Fig. 1).
#pragma once

#include <cstdint>

#include "reformer/kernels/bf16.h"
#include "reformer/kernels/rows.h"

namespace reformer::kernels {

inline constexpr int64_t kMaxFactors = 16;

template <class T>
struct LshBucketsArgs {
  Rows<const T> vectors;   // [batch, heads, length, d_head]
  const float* rotations;  // [heads, rounds, d_head, columns]
  uint16_t* buckets;       // [batch, heads, rounds, length], written
  int64_t batch;
  int64_t heads;
  int64_t rounds;
  int64_t length;
  int64_t d_head;
  int64_t columns;               // sum of factor / 2
  int64_t n_factors;             // 1: the plain hash
  int64_t factors[kMaxFactors];  // n_buckets is their product
};

namespace cpu {
void lsh_buckets(const LshBucketsArgs<float>& args);
void lsh_buckets(const LshBucketsArgs<double>& args);
}  // namespace cpu

// d_head a multiple of 8 up to 128; every vector 16-byte aligned.
namespace cuda {
void lsh_buckets(const LshBucketsArgs<float>& args, void* stream);
void lsh_buckets(const LshBucketsArgs<Bf16>& args, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
