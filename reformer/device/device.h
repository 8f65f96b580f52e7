// The device that operations run on, chosen at run time: one program serves
// machines with and without a GPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

#include <optional>
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

// N of "cuda:N", 0 of "cuda"; none of all other names.
std::optional<int> cuda_index(const std::string& name);

// "cpu", "cuda" or "cuda:N", the first GPU or another (Error where it is not
// available), or "auto": cuda where it is.
at::Device choose_device(const std::string& name);

// While one exists its device is the current one: CUDA launches, limits of
// kernels and questions after attributes are the current device's, whatever
// tensors are given. Every call of a CUDA kernel is under one
// (tests/house/layers_test.py), and there is no other way to a stream.
class LaunchGuard {
 public:
  explicit LaunchGuard(const at::Tensor& x) : LaunchGuard(x.device()) {}
  explicit LaunchGuard(at::Device device) : device_(device), guard_(device) {}

  // What LibTorch's own work on the device goes to, as kernels take it. Not of
  // a temporary, after which another device would be current again.
  void* stream() const&;
  void* stream() const&& = delete;

 private:
  at::Device device_;
  c10::DeviceGuard guard_;
};

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
std::string cuda_device_name(at::Device device);

}  // namespace reformer
