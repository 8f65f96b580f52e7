// Eight elements of a row: what a lane loads at once, 16 bytes at a time.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "reformer/kernels/cuda/instructions.cuh"

namespace reformer::kernels::cuda {

template <class T>
struct Eight;

template <>
struct Eight<__nv_bfloat16> {
  uint4 bits;
};

template <>
struct Eight<float> {
  float4 low;
  float4 high;
};

// `from` is 16-byte aligned.
__device__ __forceinline__ Eight<__nv_bfloat16> load_eight(
    const __nv_bfloat16* from) {
  return {*reinterpret_cast<const uint4*>(from)};
}
__device__ __forceinline__ Eight<float> load_eight(const float* from) {
  const auto* fours = reinterpret_cast<const float4*>(from);
  return {fours[0], fours[1]};
}

__device__ __forceinline__ void unpack(const Eight<__nv_bfloat16>& from,
                                       float (&x)[8]) {
  const uint32_t pairs[4] = {from.bits.x, from.bits.y, from.bits.z,
                             from.bits.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = __uint_as_float(pairs[i] << 16);
    x[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
  }
}
__device__ __forceinline__ void unpack(const Eight<float>& from,
                                       float (&x)[8]) {
  x[0] = from.low.x;
  x[1] = from.low.y;
  x[2] = from.low.z;
  x[3] = from.low.w;
  x[4] = from.high.x;
  x[5] = from.high.y;
  x[6] = from.high.z;
  x[7] = from.high.w;
}

// `to` likewise.
__device__ __forceinline__ void store_eight(float* to, const float (&x)[8]) {
  auto* fours = reinterpret_cast<float4*>(to);
  fours[0] = {x[0], x[1], x[2], x[3]};
  fours[1] = {x[4], x[5], x[6], x[7]};
}
__device__ __forceinline__ void store_eight(__nv_bfloat16* to,
                                            const float (&x)[8]) {
  uint32_t pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x[2 * i], x[2 * i + 1]);
    pairs[i] = reinterpret_cast<const uint32_t&>(pair);
  }
  *reinterpret_cast<uint4*>(to) = {pairs[0], pairs[1], pairs[2], pairs[3]};
}

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ __forceinline__ void store(float* to, float x) { *to = x; }
__device__ __forceinline__ void store(__nv_bfloat16* to, float x) {
  *to = __float2bfloat16_rn(x);
}

}  // namespace reformer::kernels::cuda
