// The bf16 elements of CUDA kernels, as host code names them without CUDA.
#pragma once

struct __nv_bfloat16;  // of cuda_bf16.h; laid out as at::BFloat16

namespace reformer::kernels {

using Bf16 = __nv_bfloat16;

}  // namespace reformer::kernels
