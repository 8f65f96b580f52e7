#include "reformer/device/device.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <charconv>

#include "reformer/base/errors.h"
#include "reformer/kernels/device.h"

namespace reformer {
namespace {

// The folder of the libtorch_cpu.so that this process runs.
std::string torch_folder() {
  Dl_info info{};
  const void* token = reinterpret_cast<const void*>(&c10::GetAllocator);
  if (dladdr(token, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string path = info.dli_fname;  // libc10.so lies beside it
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::string why_torch_has_no_cuda() {
  // Its NVIDIA libraries are found by its own RPATH. Global and for good: it
  // registers its operators with the LibTorch that is loaded.
  const std::string library = torch_folder() + "libtorch_cuda.so";
  if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return std::string("LibTorch's CUDA part cannot be loaded (") + dlerror() +
           ")";
  }
  if (!c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)) {
    return library + " did not register a CUDA device";
  }
  if (c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).deviceCount() == 0) {
    return "LibTorch finds no GPU";
  }
  // Wakes its allocator, which has no statistics before its first tensor.
  try {
    at::empty({1}, at::TensorOptions().device(at::kCUDA));
  } catch (const c10::Error& error) {  // full, or another's alone
    return std::string("the GPU cannot be used: ") +
           error.what_without_backtrace();
  }
  return "";
}

}  // namespace

std::string why_cuda_is_unavailable() {
  static const std::string why = kernels::cuda::available()
                                     ? why_torch_has_no_cuda()
                                     : kernels::cuda::why_unavailable();
  return why;
}

bool cuda_is_available() { return why_cuda_is_unavailable().empty(); }

std::optional<int> cuda_index(const std::string& name) {
  constexpr std::string_view kPrefix = "cuda:";
  if (name == "cuda") return 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int index = -1;
  const char* end = name.data() + name.size();
  const auto [stop, fault] =
      std::from_chars(name.data() + kPrefix.size(), end, index);
  if (fault != std::errc() || stop != end || index < 0) return std::nullopt;
  return index;
}

at::Device choose_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  const auto index = cuda_index(name);
  require(index || name == "auto",
          "device must be cpu, cuda, cuda:N or auto, got ", name);
  if (!cuda_is_available()) {
    require(name == "auto", "CUDA was asked for and is not available: ",
            why_cuda_is_unavailable(), "; use --device cpu");
    return at::kCPU;
  }
  const int chosen = index.value_or(0);
  const int count =
      c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).deviceCount();
  require(chosen < count, name,
          " was asked for, but the last GPU here is cuda:", count - 1);
  const auto why = kernels::cuda::why_unfit(chosen);
  require(why.empty(), name, " was asked for and cannot be used: ", why,
          "; use another, or --device cpu");
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(chosen));
}

void* LaunchGuard::stream() const& {
  const c10::impl::VirtualGuardImpl guard(device_.type());
  return guard.getStream(device_).native_handle();
}

at::Tensor workspace_of(int64_t bytes, const at::Tensor& x) {
  return at::empty({bytes}, x.options().dtype(at::kByte));
}

at::Tensor copied_to(const at::Tensor& x, at::Device device) {
  if (x.device() == device) return x;
  // From pinned memory the copy joins the queue; from any other the host would
  // wait for all that is in it.
  return (device.is_cpu() ? x : x.pin_memory())
      .to(device, x.scalar_type(), /*non_blocking=*/!device.is_cpu());
}

at::Tensor copied_to(const std::vector<int64_t>& numbers, at::Device device) {
  return copied_to(at::tensor(numbers, at::kLong), device);
}

void copy_into(const at::Tensor& to, const at::Tensor& from) {
  // What is not contiguous would be copied once more, out of pinned memory.
  to.copy_(to.is_cpu() ? from : from.contiguous().pin_memory(),
           /*non_blocking=*/!to.is_cpu());
}

void synchronize(at::Device device) {
  if (!device.is_cuda()) return;
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

std::string cuda_device_name(at::Device device) {
  const LaunchGuard launch(device);
  return kernels::cuda::device_name();
}

}  // namespace reformer
