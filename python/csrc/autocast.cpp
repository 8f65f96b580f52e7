// To bfloat16 on CUDA, which has such kernels; a CPU has none.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "python/csrc/operators.h"

namespace reformer::python {
namespace {

at::ScalarType autocast_type(at::DeviceType device) {
  const bool brain = device == at::kCUDA &&
                     at::autocast::get_autocast_dtype(device) == at::kBFloat16;
  return brain ? at::kBFloat16 : at::kFloat;
}

template <at::DeviceType kDevice>
Tensor cast(const Tensor& x) {
  return at::autocast::cached_cast(autocast_type(kDevice), x, kDevice);
}

c10::DispatchKeySet autocast_key(at::DeviceType device) {
  return c10::DispatchKeySet(
      at::autocast::get_autocast_dispatch_key_from_device_type(device));
}

template <at::DeviceType kDevice>
Tensor lsh_attention_autocast(const Tensor& qk, const Tensor& v, int64_t rounds,
                              int64_t chunk_length, int64_t n_buckets,
                              int64_t local_window, std::string window,
                              bool causal, int64_t successor_heads,
                              c10::SymInt seed, const MaybeTensor& mask,
                              const MaybeTensor& buckets) {
  const c10::impl::ExcludeDispatchKeyGuard without(autocast_key(kDevice));
  return lsh_attention(cast<kDevice>(qk), cast<kDevice>(v), rounds,
                       chunk_length, n_buckets, local_window, window, causal,
                       successor_heads, seed, mask, buckets);
}

template <at::DeviceType kDevice>
Tensor local_attention_autocast(const Tensor& qk, const Tensor& v,
                                int64_t chunk_length, std::string window,
                                bool causal, int64_t successor_heads,
                                const MaybeTensor& mask) {
  const c10::impl::ExcludeDispatchKeyGuard without(autocast_key(kDevice));
  return local_attention(cast<kDevice>(qk), cast<kDevice>(v), chunk_length,
                         window, causal, successor_heads, mask);
}

template <at::DeviceType kDevice>
std::tuple<Tensor, Tensor> interval_attention_autocast(
    const Tensor& q, const MaybeTensor& k, const Tensor& v, const Tensor& order,
    const Tensor& place, const Tensor& interval, const MaybeTensor& mask,
    int64_t successor_heads) {
  const c10::impl::ExcludeDispatchKeyGuard without(autocast_key(kDevice));
  return interval_attention(
      cast<kDevice>(q), k ? MaybeTensor(cast<kDevice>(*k)) : k,
      cast<kDevice>(v), order, place, interval, mask, successor_heads);
}

template <at::DeviceType kDevice>
void implement_autocast(torch::Library& m) {
  m.impl("lsh_attention", lsh_attention_autocast<kDevice>);
  m.impl("local_attention", local_attention_autocast<kDevice>);
  m.impl("interval_attention", interval_attention_autocast<kDevice>);
}

}  // namespace

TORCH_LIBRARY_IMPL(reformer, AutocastCPU, m) {
  implement_autocast<at::kCPU>(m);
}
TORCH_LIBRARY_IMPL(reformer, AutocastCUDA, m) {
  implement_autocast<at::kCUDA>(m);
}

}  // namespace reformer::python
