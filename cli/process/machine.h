// The machine that a measurement is about.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace reformer::cli {

// Cores that this process may run on, or OMP_NUM_THREADS where that is set.
int available_threads();

// For our kernels and for LibTorch alike.
void use_threads(int count);

int64_t physical_memory_bytes();

// Has LibTorch put large tensors on huge pages, unless the environment says
// otherwise: gathering rows in sorted order misses the page tables' cache
// without them. Before the first tensor.
void use_huge_pages();

// "AMD EPYC, 2 threads, avx512 kernels, huge pages", or the GPU's name.
std::string describe_machine(c10::Device device = c10::kCPU);

}  // namespace reformer::cli
