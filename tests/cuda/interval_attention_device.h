// Runs interval attention on the GPU over arrays of the host.
#pragma once

#include "tests/cuda/interval_attention_problem.h"

namespace reformer::kernels {

inline void require_ok(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

// An array on the device; what is not copied there is poison.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(int64_t size) : size_(size) {
    require_ok(cudaMalloc(&data_, std::max<int64_t>(size, 1) * sizeof(T)));
    require_ok(cudaMemset(data_, 0xff, size * sizeof(T)));
  }
  template <class U>
  explicit DeviceArray(const std::vector<U>& host)
      : DeviceArray(static_cast<int64_t>(host.size())) {
    const std::vector<T> converted(host.begin(), host.end());
    require_ok(cudaMemcpy(data_, converted.data(), size_ * sizeof(T),
                          cudaMemcpyHostToDevice));
  }
  DeviceArray(DeviceArray&& other) noexcept { *this = std::move(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~DeviceArray() { cudaFree(data_); }

  T* data() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> out(size_);
    require_ok(cudaMemcpy(out.data(), data_, size_ * sizeof(T),
                          cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
};

// The tables of SuccessorsView.
inline std::vector<int32_t> ends_of(const Problem& p) {
  std::vector<int32_t> ends;
  for (int64_t b = 0; b < p.sizes.batch; ++b) {
    int32_t first = -1;
    int32_t last = -1;
    for (int64_t i = 0; i < p.sizes.length; ++i) {
      if (!p.real(b, i)) continue;
      last = static_cast<int32_t>(i);
      if (first < 0) first = last;
    }
    ends.insert(ends.end(), {first, last});
  }
  return ends;
}
inline std::vector<int32_t> cyclic(const Problem& p) {
  const int64_t length = p.sizes.length;
  const auto ends = ends_of(p);
  auto next = p.next();
  for (int64_t at = 0; at < p.sizes.batch * length; ++at) {
    const int64_t b = at / length;
    if (next[at] == length) next[at] = ends[2 * b];
    if (!p.real(b, at % length)) next[at] = static_cast<int32_t>(at % length);
  }
  return next;
}

template <class T>
struct DeviceProblem {
  explicit DeviceProblem(const Problem& p)
      : sizes(p.sizes),
        q(p.q),
        k(p.k),
        v(p.v),
        d_output(p.d_output),
        mask(p.mask),
        order(p.order),
        place(p.place),
        interval(p.interval),
        next(cyclic(p)),
        ends(ends_of(p)),
        output(sizes.numbers()),
        d_q(sizes.numbers()),
        d_k(sizes.shared ? 0 : sizes.numbers()),
        d_v(sizes.numbers()),
        lse(sizes.rows()),
        softmax(sizes.rows() * 2) {
    const auto rows = [&](auto* data) {
      using Element = std::remove_pointer_t<decltype(data)>;
      return Rows<Element>{data, sizes.heads * sizes.length * sizes.d,
                           sizes.length * sizes.d, sizes.d};
    };
    const auto constant = [](T* data) { return static_cast<const T*>(data); };
    const int64_t rounds = sizes.all_rounds();
    const int64_t head = sizes.length * rounds;
    args.forward.q = rows(constant(q.data()));
    if (!sizes.shared) args.forward.k = rows(constant(k.data()));
    args.forward.v = rows(constant(v.data()));
    if (sizes.padded) {
      args.forward.mask = reinterpret_cast<const bool*>(mask.data());
      args.forward.successors = {0, next.data(), ends.data()};
    }
    args.forward.successors.heads = sizes.successor_heads;
    args.forward.rounds = {order.data(),
                           place.data(),
                           interval.data(),
                           sizes.heads * head,
                           head,
                           sizes.heads * head,
                           head,
                           sizes.heads * head * 2,
                           head * 2,
                           rounds};
    args.forward.output = rows(output.data());
    args.forward.lse = lse.data();
    args.forward.softmax = softmax.data();
    args.forward.batch = sizes.batch;
    args.forward.heads = sizes.heads;
    args.forward.length = sizes.length;
    args.forward.d_head = sizes.d;
    args.d_output = rows(constant(d_output.data()));
    args.d_q = rows(d_q.data());
    if (!sizes.shared) args.d_k = rows(d_k.data());
    args.d_v = rows(d_v.data());
    if constexpr (!std::is_same_v<T, float>) {
      workspace = DeviceArray<char>(
          std::max(cuda::interval_attention_workspace(args.forward),
                   cuda::interval_attention_grad_workspace(args)));
    }
  }

  void forward() const {
    if constexpr (std::is_same_v<T, float>) {
      cuda::interval_attention(args.forward, nullptr);
    } else {
      cuda::interval_attention(args.forward, workspace.data(), nullptr);
    }
  }
  void backward() const {
    if constexpr (std::is_same_v<T, float>) {
      cuda::interval_attention_grad(args, nullptr);
    } else {
      cuda::interval_attention_grad(args, workspace.data(), nullptr);
    }
  }

  Result run() const {
    forward();
    backward();
    require_ok(cudaDeviceSynchronize());
    const auto numbers = [](const auto& array) {
      const auto host = array.host();
      std::vector<double> out;
      for (const auto& x : host) out.push_back(static_cast<float>(x));
      return out;
    };
    return {numbers(output), numbers(lse), numbers(d_q), numbers(d_k),
            numbers(d_v)};
  }

  Case sizes;
  DeviceArray<T> q, k, v, d_output;
  DeviceArray<char> mask;
  DeviceArray<int32_t> order, place, interval, next, ends;
  DeviceArray<T> output, d_q, d_k, d_v;
  DeviceArray<float> lse, softmax;
  DeviceArray<char> workspace;
  IntervalAttentionGradArgs<T> args{};
};

}  // namespace reformer::kernels
