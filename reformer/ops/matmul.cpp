#include "reformer/ops/matmul.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

namespace reformer {
namespace {

// What the library's matmuls write besides their own type.
bool widens(const at::Tensor& a, at::ScalarType result) {
  return a.is_cuda() && a.scalar_type() == at::kBFloat16 &&
         result == at::kFloat;
}

}  // namespace

at::Tensor matmul(const at::Tensor& a, const at::Tensor& b,
                  at::ScalarType result) {
  if (widens(a, result)) return at::mm(a, b, result);
  return at::mm(a, b).to(result);
}

void add_matmul(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b,
                double scale) {
  at::Tensor to = sum;
  if (widens(a, sum.scalar_type())) {
    // Where `self` is the very tensor that is written, nothing is copied.
    at::addmm_out(to, to, a, b, at::kFloat, /*beta=*/1, scale);
  } else if (a.scalar_type() == sum.scalar_type()) {
    to.addmm_(a, b, /*beta=*/1, scale);
  } else {
    to.add_(at::mm(a, b), scale);
  }
}

at::Tensor as_matrix(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

}  // namespace reformer
