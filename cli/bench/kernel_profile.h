// What a GPU does during some work: kernels by name, with their share of time.
#pragma once

#include <functional>
#include <string>

namespace reformer::cli {

// Runs `work` once under LibTorch's profiler and returns a table: the longest
// kernels and copies, their number, milliseconds and share; and how long the
// GPU was busy and the whole took. The work must end by waiting for the GPU.
std::string kernel_profile(const std::function<void()>& work);

}  // namespace reformer::cli
