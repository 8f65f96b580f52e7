// Whether something failed for want of memory, whoever threw it.
#pragma once

#include <exception>
#include <functional>

namespace reformer {

// Our own kernels (OutOfMemory), LibTorch's allocators, CUDA and its libraries
// by way of LibTorch, and the host.
bool is_out_of_memory(const std::exception& error);

// Whether this machine can do `work` at all: false where LibTorch throws. What
// fails for want of memory says nothing of that, and is thrown on.
bool is_supported(const std::function<void()>& work);

}  // namespace reformer
