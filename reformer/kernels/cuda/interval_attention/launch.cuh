// Launching the kernels of interval attention.
#pragma once

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "reformer/kernels/cuda/interval_attention/rows.cuh"
#include "reformer/kernels/cuda/launch.h"
#include "reformer/kernels/lsh_intervals.h"

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

// From compute capability 9.0 on, and only code that was compiled for it waits:
// what the driver makes of older PTX does not. All kernels of one file are
// compiled alike, so that the first of those with these Params answers for all,
// on each device for itself.
template <class Params>
bool can_start_early(void (*kernel)(Params)) {
  constexpr int kDevices = 64;  // that are remembered
  enum : int { kUnknown, kCan, kCannot };
  static std::atomic<int> known[kDevices];
  const int device = current_device();
  if (device < kDevices && known[device] != kUnknown) {
    return known[device] == kCan;
  }
  cudaFuncAttributes attributes;
  check(
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)),
      "cudaFuncGetAttributes");
  const bool can = attributes.ptxVersion >= 90;
  if (device < kDevices) known[device] = can ? kCan : kCannot;
  return can;
}

// Blocks of the kernels below are as large as fits two to four of them into a
// multiprocessor of 227 KB. Where the tables of many rounds leave no room for
// one, a round is taken by smaller blocks.
inline constexpr int kSmallWarps = 2;
inline constexpr int kSmallHalo = 16;

// `bytes`: of a small block in the last round.
inline void require_room(int64_t bytes, int64_t rounds, int64_t d,
                         const char* what) {
  require(fits_shared_memory(bytes), what, ": ", rounds, " rounds of d_head ",
          d, " need ", bytes, " bytes of shared memory a block, this GPU has ",
          most_shared_memory(), "; use fewer rounds");
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

// Heads (of all batches) whose rounds are launched together.
template <class T>
int heads_together(const IntervalAttentionArgs<T>& args) {
  return static_cast<int>(std::clamp<int64_t>(
      ceil_div(kRowsTogether, args.length), 1, args.batch * args.heads));
}

// Calls body(first, count) for each such group.
template <class T, class Body>
void for_each_group(const IntervalAttentionArgs<T>& args, const Body& body) {
  const int heads = static_cast<int>(args.batch * args.heads);
  const int together = heads_together(args);
  for (int first = 0; first < heads; first += together) {
    body(first, std::min(together, heads - first));
  }
}

// Launches a kernel without <<<>>>, which only nvcc can read (tests/emulation).
template <class Params>
void launch(void (*kernel)(Params), const dim3& grid, int threads,
            cudaStream_t stream, const Params& params, const char* what) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, params), what);
}

// Launches one round after the other. Where they can start early, blocks of a
// round gather their rows while the last blocks of the round before are still
// at work: see wait_for_last_round.
template <class Params>
void launch_round(void (*kernel)(Params), const dim3& grid, int threads,
                  int bytes, cudaStream_t stream, const Params& params,
                  const char* what) {
  allow_shared_memory(kernel, bytes, what);
  cudaLaunchAttribute early;
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<size_t>(bytes);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = params.round > 0 && can_start_early(kernel) ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, params), what);
}

}  // namespace reformer::kernels::cuda
