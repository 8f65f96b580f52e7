#include "reformer/kernels/device.h"

#include "reformer/kernels/cuda/launch.h"

namespace reformer::kernels::cuda {
namespace {

constexpr int kLeastMajor = 8;  // compute capability

std::string reason() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();  // or the next launch would report it
    if (status == cudaErrorInsufficientDriver) {
      return "there is no NVIDIA driver, or one too old for these kernels";
    }
    if (status == cudaSuccess || status == cudaErrorNoDevice) {
      return "no NVIDIA GPU was found";
    }
    return std::string("the NVIDIA driver does not answer (") +
           cudaGetErrorString(status) + ")";
  }
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return why_unfit(device);
}

}  // namespace

std::string why_unfit(int index) {
  int major = 0;
  check(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index),
      "cudaDeviceGetAttribute");
  if (major >= kLeastMajor) return "";
  return "the GPU has compute capability " + std::to_string(major) +
         ".x, at least 8.0 is required";
}

std::string why_unavailable() {
  static const std::string why = reason();
  return why;
}

bool available() { return why_unavailable().empty(); }

std::string device_name() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device),
        "cudaGetDeviceProperties");
  return properties.name;
}

}  // namespace reformer::kernels::cuda
