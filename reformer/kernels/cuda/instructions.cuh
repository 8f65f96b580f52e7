// Instructions of compute capability 8.0 and later that C++ has no words for.
// Interval attention has inline assembly only here, so that tests/emulation can
// put another header of this name before it.
//
// Operands of the tensor cores (mma.sync.m16n8k16), with lane = 4 g + t:
//   A, 16 x 16   a[0..3]: rows g, g + 8, g, g + 8; columns 2t, 2t + 1, of the
//                first eight columns in a[0], a[1], of the last in a[2], a[3]
//   B, 16 x 8    b[0], b[1]: column g, rows 2t, 2t + 1, and the same + 8
//   C, 16 x 8    c[0..3]: row g columns 2t, 2t + 1, then row g + 8
// So the C of one matmul, in pairs of bf16, is the A of the next.
#pragma once

#include <cstdint>

namespace reformer::kernels::cuda {

// Declares `name`, the block's dynamic shared memory. Not a function: from one
// nvcc 13 compiles the kernels otherwise.
#define REFORMER_SHARED_MEMORY(name) \
  extern __shared__ __align__(256) unsigned char name[]

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Asynchronous copies to shared memory; of what is not real, zeros.
__device__ __forceinline__ void copy_16(uint32_t to, const void* from,
                                        bool real) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(from), "r"(real ? 16 : 0)
               : "memory");
}
// Of what is read once: it does not displace from L2 what is read again.
__device__ __forceinline__ void copy_16_once(uint32_t to, const void* from) {
  asm volatile(
      "{\n"
      ".reg .b64 policy;\n"
      "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, policy;\n"
      "}" ::"r"(to),
      "l"(from)
      : "memory");
}
__device__ __forceinline__ void copy_8(uint32_t to, const void* from,
                                       bool real) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to),
               "l"(from), "r"(real ? 8 : 0)
               : "memory");
}
__device__ __forceinline__ void copy_4(uint32_t to, const void* from,
                                       bool real) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to),
               "l"(from), "r"(real ? 4 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until all but the last kPending groups of this thread have arrived.
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

__device__ __forceinline__ void store_word(uint32_t to, uint32_t word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}

// Four 8 x 8 matrices of bf16 (ldmatrix): lane 8 m + r names row r of matrix m,
// and gets row g, columns 2t, 2t + 1 of each.
__device__ __forceinline__ void load_4(uint32_t (&r)[4], uint32_t address) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(address));
}
// Of their transposes.
__device__ __forceinline__ void load_4_transposed(uint32_t (&r)[4],
                                                  uint32_t address) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(address));
}

// c = a b, c += a b.
__device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4],
                                         uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.f));
}
__device__ __forceinline__ void multiply_add(float (&c)[4],
                                             const uint32_t (&a)[4],
                                             uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 2^x, 0 for -inf.
__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// A block calls the first at its beginning and the second before it reads or
// writes what rounds hand on: in between it may run beside the last blocks of
// the round before (launch_round).
__device__ __forceinline__ void let_next_round_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ __forceinline__ void wait_for_last_round() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace reformer::kernels::cuda
