#include "reformer/ops/joined_softmax.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reformer/base/parallel.h"

namespace reformer {
namespace {

template <class T>
constexpr T kNobody = -std::numeric_limits<T>::infinity();  // an lse

// A row at a time: LibTorch's vectors on a CPU round otherwise than what is
// left behind the last whole one, and where that is depends on batch and
// threads.
template <class T>
void join_on_cpu(const at::Tensor& result, const at::Tensor& result_lse,
                 const at::Tensor& sum, const at::Tensor& sum_lse) {
  constexpr int64_t kRows = 1024;  // of a task
  const int64_t rows = sum_lse.numel();
  const int64_t d = sum.size(3);
  const T* from = result.const_data_ptr<T>();
  const T* from_lse = result_lse.const_data_ptr<T>();
  T* to = sum.mutable_data_ptr<T>();
  T* to_lse = sum_lse.mutable_data_ptr<T>();
  parallel_tasks((rows + kRows - 1) / kRows, [&](int64_t task) {
    const int64_t end = std::min(rows, (task + 1) * kRows);
    for (int64_t i = task * kRows; i < end; ++i) {
      const T a = to_lse[i];
      const T b = from_lse[i];
      if (b == kNobody<T>) continue;
      const T* x = from + i * d;
      T* y = to + i * d;
      if (a == kNobody<T>) {
        std::copy_n(x, d, y);
        to_lse[i] = b;
        continue;
      }
      to_lse[i] = std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
      const T share = std::exp(b - to_lse[i]);
      for (int64_t c = 0; c < d; ++c) y[c] += share * (x[c] - y[c]);
    }
  });
}

}  // namespace

void JoinedSoftmax::add(const AttentionResult& result) {
  const auto output = result.output.to(result.lse.scalar_type()).contiguous();
  const auto lse = result.lse.contiguous();
  if (!output_.defined()) {
    output_ = output.clone();
    lse_ = lse.clone();
    return;
  }
  if (output.is_cpu()) {
    return output.scalar_type() == at::kDouble
               ? join_on_cpu<double>(output, lse, output_, lse_)
               : join_on_cpu<float>(output, lse, output_, lse_);
  }
  const auto both = at::logaddexp(lse_, lse);
  const auto joined =
      at::lerp(output_, output, at::exp(lse - both).unsqueeze(-1));
  // What is no number in the row of who sees nobody must not reach the sum.
  const auto nobody = [](const at::Tensor& x) {
    return (x == kNobody<double>).unsqueeze(-1);
  };
  output_ =
      at::where(nobody(lse), output_, at::where(nobody(lse_), output, joined));
  lse_ = both;
}

}  // namespace reformer
