// Which devices these kernels can run on, here and now.
#pragma once

#include <string>

namespace reformer::kernels::cuda {

// Whether CUDA kernels were compiled in and this machine has a GPU for them.
bool available();

// Why not, as half a sentence; empty where they are.
std::string why_unavailable();

// Why GPU number `index`, which is there, cannot run them; likewise.
std::string why_unfit(int index);

// "NVIDIA H200": of the current device.
std::string device_name();

}  // namespace reformer::kernels::cuda
