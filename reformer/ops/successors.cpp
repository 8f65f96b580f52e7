#include "reformer/ops/successors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cummin.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>

#include <tuple>

namespace reformer {

Successors::Successors(int64_t heads, const at::Tensor& mask) : heads_(heads) {
  if (heads == 0 || !mask.defined()) return;
  const int64_t batch = mask.size(0);
  const int64_t length = mask.size(1);
  const auto position =
      at::arange(length, mask.options().dtype(at::kInt)).expand({batch, -1});
  const auto real = at::where(mask, position, length);
  const auto from_here = std::get<0>(real.flip(1).cummin(1)).flip(1);
  const auto first = from_here.narrow(1, 0, 1);  // `length`: there is none
  const auto last = at::where(mask, position, -1).amax(1, /*keepdim=*/true);
  const auto after = at::cat({from_here.narrow(1, 1, length - 1),
                              at::full({batch, 1}, length, real.options())},
                             1);
  const auto cyclic = at::where(after.eq(length), first, after);
  next_ = at::where(mask, cyclic, position).to(at::kInt).contiguous();
  ends_ = at::cat({at::where(first.eq(length), -1, first), last}, 1)
              .to(at::kInt)
              .contiguous();
}

kernels::SuccessorsView Successors::view() const {
  if (!next_.defined()) return {heads_, nullptr, nullptr};
  return {heads_, next_.const_data_ptr<int32_t>(),
          ends_.const_data_ptr<int32_t>()};
}

}  // namespace reformer
