// The end of the gradients of successor values (OfferedValues in
// ../interval_attention.h).
#pragma once

#include "reformer/kernels/cuda/eight.cuh"
#include "reformer/kernels/cuda/interval_attention/launch.cuh"
#include "reformer/kernels/cuda/interval_attention/rows.cuh"

namespace reformer::kernels::cuda {

// A block owns a (batch, head) with successors, a thread a column: moves what
// the last position offers, its own value, from the first one's row of d_v, and
// gives that its own.
template <class T>
__global__ void end_gradients_kernel(
    const __grid_constant__ IntervalAttentionGradArgs<T> args) {
  const auto& forward = args.forward;
  const int64_t b = blockIdx.x / forward.successors.heads;
  const int64_t h = blockIdx.x % forward.successors.heads;
  const auto ends = forward.successors.ends_of(b, h, forward.length);
  const int column = static_cast<int>(threadIdx.x);
  if (ends.first < 0 || column >= forward.d_head) return;
  T* d_v = head_of(args.d_v, b, h) + column;
  T* first = d_v + ends.first * args.d_v.row_stride;
  T* last = d_v + ends.last * args.d_v.row_stride;
  if (last != first) store(last, to_float(*last) + to_float(*first));
  const int64_t row = (b * forward.heads + h) * forward.length + ends.first;
  const bool lone = forward.softmax[2 * row + 1] == 0;
  const T* d_output = head_of(args.d_output, b, h) + column;
  store(first,
        lone ? to_float(d_output[ends.first * args.d_output.row_stride]) : 0);
}

template <class T>
void end_gradients(const IntervalAttentionGradArgs<T>& args,
                   cudaStream_t stream) {
  const int64_t heads = args.forward.batch * args.forward.successors.heads;
  if (heads == 0) return;
  constexpr const char* kName = "interval_attention_grad: successors";
  launch(end_gradients_kernel<T>, grid_for(heads, 1, kName), /*threads=*/128,
         stream, args, kName);
}

}  // namespace reformer::kernels::cuda
