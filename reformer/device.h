/// @file
/// Which device, and how many threads.
#pragma once

#include <string>

namespace reformer {

/// Whether models and tensors can be on a GPU: this library was built with
/// CUDA, and there is one that LibTorch can use.
///
/// The first call looks for it and loads LibTorch's CUDA part, which nothing
/// was linked with. A program that makes CUDA tensors itself calls this first,
/// and before it asks LibTorch whether there is CUDA, because LibTorch
/// remembers the answer. Any thread may call it.
bool cuda_available();

/// Why not, as half a sentence; empty where it is.
std::string why_no_cuda();

/// How many threads this library and LibTorch use for one piece of work on the
/// CPU; at first `OMP_NUM_THREADS`, or all cores.
///
/// Attention is the same, bit for bit, for any number. Called before other
/// threads use the library. Throws Error unless it is at least 1.
void use_threads(int count);

}  // namespace reformer
