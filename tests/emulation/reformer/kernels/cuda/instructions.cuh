// Stands before reformer/kernels/cuda/instructions.cuh where kernels are
// emulated: the same functions, and the words of CUDA that g++ does not know.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>

#include "tests/emulation/emulator.h"

#undef __launch_bounds__
#define __launch_bounds__(...)

// Of the thread that runs.
extern uint3 threadIdx;
extern uint3 blockIdx;

namespace reformer::emulation {

inline void require_all_lanes(unsigned mask) {
  if (mask != 0xffffffffu) fail("only whole warps are emulated");
}

// __shfl_xor_sync
struct Exchange {
  uint64_t word;
  int with;  // lane ^ with
  uint64_t got = 0;

  static void together(Exchange* const (&lanes)[kLanes]) {
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes[lane]->got = lanes[lane ^ lanes[lane]->with]->word;
    }
  }
};

// __ballot_sync
struct Vote {
  bool own;
  unsigned all = 0;

  static void together(Vote* const (&lanes)[kLanes]) {
    unsigned all = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      all |= unsigned{lanes[lane]->own} << lane;
    }
    for (Vote* lane : lanes) lane->all = all;
  }
};

// __syncwarp
struct Meeting {
  static void together(Meeting* const (&)[kLanes]) {}
};

// ldmatrix.x4
template <bool kTransposed>
struct LoadMatrices {
  const unsigned char* row;
  uint32_t got[4] = {};

  static void together(LoadMatrices* const (&lanes)[kLanes]) {
    for (int m = 0; m < 4; ++m) {
      uint16_t matrix[8][8];
      for (int r = 0; r < 8; ++r) {
        std::memcpy(matrix[r], lanes[8 * m + r]->row, 16);
      }
      for (int lane = 0; lane < kLanes; ++lane) {
        const int g = lane / 4;
        const int t = lane % 4;
        const uint32_t low = kTransposed ? matrix[2 * t][g] : matrix[g][2 * t];
        const uint32_t high =
            kTransposed ? matrix[2 * t + 1][g] : matrix[g][2 * t + 1];
        lanes[lane]->got[m] = low | high << 16;
      }
    }
  }
};

// mma.sync.m16n8k16: c += a b, added up in fp32.
struct Multiply {
  uint32_t a[4];
  uint32_t b[2];
  float c[4];

  static void together(Multiply* const (&lanes)[kLanes]) {
    float a[16][16];
    float b[16][8];
    float c[16][8];
    for (int lane = 0; lane < kLanes; ++lane) {
      const Multiply& own = *lanes[lane];
      const int g = lane / 4;
      const int t = lane % 4;
      for (int i = 0; i < 4; ++i) {
        unpack(own.a[i], a[g + 8 * (i % 2)] + 2 * t + 8 * (i / 2), 1);
        c[g + 8 * (i / 2)][2 * t + i % 2] = own.c[i];
      }
      for (int i = 0; i < 2; ++i) unpack(own.b[i], &b[2 * t + 8 * i][g], 8);
    }
    for (int row = 0; row < 16; ++row) {
      for (int k = 0; k < 16; ++k) {
        for (int n = 0; n < 8; ++n) c[row][n] += a[row][k] * b[k][n];
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int i = 0; i < 4; ++i) {
        lanes[lane]->c[i] = c[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2];
      }
    }
  }

 private:
  // Two bf16 numbers, the low half first.
  static void unpack(uint32_t pair, float* to, int stride) {
    const uint32_t bits[2] = {pair << 16, pair & 0xffff0000u};
    std::memcpy(to, &bits[0], 4);
    std::memcpy(to + stride, &bits[1], 4);
  }
};

}  // namespace reformer::emulation

// Words of the language.

inline void __syncthreads() { reformer::emulation::wait_for_block(); }
inline void __syncwarp() {
  reformer::emulation::Meeting own;
  meet(own);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int with) {
  reformer::emulation::require_all_lanes(mask);
  reformer::emulation::Exchange own = {0, with};
  std::memcpy(&own.word, &x, sizeof(T));
  meet(own);
  std::memcpy(&x, &own.got, sizeof(T));
  return x;
}
inline unsigned __ballot_sync(unsigned mask, bool x) {
  reformer::emulation::require_all_lanes(mask);
  reformer::emulation::Vote own = {x};
  meet(own);
  return own.all;
}
inline bool __any_sync(unsigned mask, bool x) {
  return __ballot_sync(mask, x) != 0;
}
inline bool __all_sync(unsigned mask, bool x) {
  return __ballot_sync(mask, x) == 0xffffffffu;
}
inline int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}

// Of what no launch of the operation writes. As aligned as GPUs want it.
template <class T>
T __ldg(const T* from) {
  if (reinterpret_cast<uintptr_t>(from) % sizeof(T) != 0) {
    reformer::emulation::fail("a load that is not aligned");
  }
  return *from;
}
// What bypasses caches is what one launch hands on to the next.
template <class T>
T __ldcs(const T* from) {
  reformer::emulation::require_last_launch_ended();
  return *from;
}
template <class T>
T __ldcg(const T* from) {
  return __ldcs(from);
}
template <class T>
void __stcs(T* to, const T& x) {
  reformer::emulation::require_last_launch_ended();
  *to = x;
}

// Launches.

namespace reformer::emulation {

// The most that a kernel may be launched with.
template <class Params>
int& shared_memory_of(void (*kernel)(Params)) {
  static std::map<void (*)(Params), int> most;
  return most.try_emplace(kernel, kSharedMemoryUnasked).first->second;
}

}  // namespace reformer::emulation

template <class Params>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Params), cudaFuncAttribute,
                                 int bytes) {
  if (bytes > reformer::emulation::most_shared_memory) {
    return cudaErrorInvalidValue;
  }
  reformer::emulation::shared_memory_of(kernel) = bytes;
  return cudaSuccess;
}
template <class Params, class Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config,
                               void (*kernel)(Params), Given&& params) {
  const int bytes = static_cast<int>(config->dynamicSmemBytes);
  if (bytes > reformer::emulation::shared_memory_of(kernel)) {
    return cudaErrorInvalidValue;
  }
  reformer::emulation::launch(
      {config->gridDim, static_cast<int>(config->blockDim.x),
       config->dynamicSmemBytes, config->numAttrs > 0},
      [&] { kernel(params); });
  return cudaSuccess;
}

namespace reformer::kernels::cuda {

using std::max;
using std::min;

#define REFORMER_SHARED_MEMORY(name) \
  unsigned char* const name = emulation::shared_memory()

// Of any pointer: only what is read or written must be there.
inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(static_cast<const unsigned char*>(pointer) -
                               emulation::shared_memory());
}

inline void copy_16(uint32_t to, const void* from, bool real) {
  emulation::start_copy(to, from, 16, real);
}
inline void copy_16_once(uint32_t to, const void* from) {
  emulation::require_last_launch_ended();
  emulation::start_copy(to, from, 16, /*real=*/true);
}
inline void copy_8(uint32_t to, const void* from, bool real) {
  emulation::start_copy(to, from, 8, real);
}
inline void copy_4(uint32_t to, const void* from, bool real) {
  emulation::start_copy(to, from, 4, real);
}
inline void commit_copies() { emulation::commit_copies(); }
template <int kPending>
void wait_for_copies() {
  emulation::wait_for_copies(kPending);
}

inline void store_word(uint32_t to, uint32_t word) {
  std::memcpy(emulation::shared_at(to, 4), &word, 4);
}

template <bool kTransposed>
void load_matrices(uint32_t (&r)[4], uint32_t address) {
  emulation::LoadMatrices<kTransposed> own = {
      emulation::shared_at(address, 16)};
  meet(own);
  std::memcpy(r, own.got, sizeof(r));
}
inline void load_4(uint32_t (&r)[4], uint32_t address) {
  load_matrices<false>(r, address);
}
inline void load_4_transposed(uint32_t (&r)[4], uint32_t address) {
  load_matrices<true>(r, address);
}

inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                         uint32_t b1) {
  emulation::Multiply own = {
      {a[0], a[1], a[2], a[3]}, {b0, b1}, {c[0], c[1], c[2], c[3]}};
  meet(own);
  std::memcpy(c, own.c, sizeof(c));
}
inline void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                     uint32_t b1) {
  c[0] = c[1] = c[2] = c[3] = 0;
  multiply_add(c, a, b0, b1);
}

inline float exp2_of(float x) { return std::exp2(x); }

inline void let_next_round_start() {}
inline void wait_for_last_round() { emulation::wait_for_last_launch(); }

}  // namespace reformer::kernels::cuda
