// The machine that a measurement is about.
#pragma once

#include <cstdint>
#include <string>

namespace reformer::cli {

// Cores that this process may run on, or OMP_NUM_THREADS where that is set.
int available_threads();

// For our kernels and for LibTorch alike.
void use_threads(int count);

int64_t physical_memory_bytes();

// "AMD EPYC, 2 threads, avx512 kernels".
std::string describe_machine();

}  // namespace reformer::cli
