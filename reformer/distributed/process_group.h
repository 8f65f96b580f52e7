// Groups of ranks by c10d, PyTorch's own: who includes this includes much.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>

namespace reformer {

struct GroupPlace {
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{};  // of an operation
};

// Between CPUs. `address` is this machine's own, by which the other ranks reach
// it; GLOO_SOCKET_IFNAME, where it is set, names a network interface instead.
c10::intrusive_ptr<c10d::Backend> make_gloo_group(
    const c10::intrusive_ptr<c10d::Store>& store, const GroupPlace& place,
    const std::string& address);

// Between GPUs; cuda_is_available() has loaded LibTorch's CUDA part before.
// Throws Error where that has no NCCL.
c10::intrusive_ptr<c10d::Backend> make_nccl_group(
    const c10::intrusive_ptr<c10d::Store>& store, const GroupPlace& place);

// No object of NCCL's that LibTorch makes is larger.
inline constexpr size_t kNcclRoom = size_t{1} << 16;

}  // namespace reformer
