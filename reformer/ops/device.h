// The device that operations run on, chosen at run time: one program serves
// machines with and without a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace reformer {

// Whether tensors and our kernels can be on a GPU. The first call looks for one
// and loads LibTorch's CUDA part, which the program is not linked with; it must
// come before anything asks LibTorch whether it has CUDA, because LibTorch
// remembers the answer.
bool cuda_is_available();

// Why not, as half a sentence; empty where it is.
std::string why_cuda_is_unavailable();

// "cpu", "cuda" (Error where it is not available) or "auto": cuda where it is.
at::Device choose_device(const std::string& name);

// The stream that LibTorch's own work on the device of `x` goes to, as kernels
// take it.
void* current_stream(const at::Tensor& x);

// Memory for a kernel on the device of `x`, freed in the order of its stream.
at::Tensor workspace_of(int64_t bytes, const at::Tensor& x);

// The same tensor on `device`, [n] int64 of `numbers` likewise. Nothing waits
// for a GPU: the copies join the queue of its current stream.
at::Tensor copied_to(const at::Tensor& x, at::Device device);
at::Tensor copied_to(const std::vector<int64_t>& numbers, at::Device device);

// Likewise from the CPU into a tensor that is there already.
void copy_into(const at::Tensor& to, const at::Tensor& from);

// Waits until all work on the device is done; nothing to do for the CPU.
void synchronize(at::Device device);

// "NVIDIA H200"; for reports.
std::string cuda_device_name();

}  // namespace reformer
