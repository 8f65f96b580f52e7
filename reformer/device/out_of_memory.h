// Whether something failed for want of memory, whoever threw it.
#pragma once

#include <exception>

namespace reformer {

// Our own kernels (OutOfMemory), LibTorch's allocators, CUDA and its libraries
// by way of LibTorch, and the host.
bool is_out_of_memory(const std::exception& error);

}  // namespace reformer
