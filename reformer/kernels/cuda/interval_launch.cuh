// Launching the kernels of interval attention.
#pragma once

#include <type_traits>

#include "reformer/kernels/cuda/interval_rows.cuh"
#include "reformer/kernels/cuda/launch.h"

namespace reformer::kernels::cuda {

// Calls body with an integral_constant: the least padded d_head of at least d.
template <class Body>
void with_padded_d(int64_t d, const Body& body) {
  require(d % 8 == 0 && d >= 8 && d <= 128,
          "interval_attention: d_head must be a multiple of 8 up to 128 on "
          "CUDA devices, got ",
          d);
  if (d <= 32) return body(std::integral_constant<int, 32>{});
  if (d <= 64) return body(std::integral_constant<int, 64>{});
  if (d <= 96) return body(std::integral_constant<int, 96>{});
  body(std::integral_constant<int, 128>{});
}

inline int64_t padded_d(int64_t d) { return ceil_div(d, 32) * 32; }

// Throws Error unless the kernels can take `args` (interval_attention.h).
template <class T>
void require_supported(const IntervalAttentionArgs<T>& args) {
  require(args.length >= 1 && args.length <= kMaxLength,
          "interval_attention: length must be 1 to ", kMaxLength,
          " on CUDA devices, got ", args.length);
  require(args.batch * args.heads <= 65535,
          "interval_attention: batch * heads must be at most 65535 on CUDA "
          "devices, got ",
          args.batch * args.heads);
  const Rows<const T> inputs[] = {args.q, args.k, args.v};
  for (const auto& rows : inputs) {
    require(reinterpret_cast<uintptr_t>(rows.data) % 16 == 0 &&
                rows.row_stride * sizeof(T) % 16 == 0 &&
                rows.row_stride <= INT32_MAX,
            "interval_attention: rows must begin at multiples of 16 bytes, "
            "less than 2^31 elements apart, got a stride of ",
            rows.row_stride);
  }
}

template <class Kernel, class Params>
void launch(Kernel* kernel, const dim3& grid, int threads, int bytes,
            cudaStream_t stream, const Params& params, const char* what) {
  allow_shared_memory(kernel, bytes, what);
  kernel<<<grid, threads, bytes, stream>>>(params);
  check_launch(what);
}

}  // namespace reformer::kernels::cuda
