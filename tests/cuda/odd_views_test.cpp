// On a GPU too, q, k and v may be views of any strides.
#include "tests/support/odd_views.h"

#include <gtest/gtest.h>

namespace reformer {
namespace {

TEST(CudaOddViews, AttendAsTheirCopiesDo) {
  const auto options = at::TensorOptions(at::Device(at::kCUDA, 0));
  expect_views_are_copies(options.dtype(at::kFloat), 1e-5);
  expect_views_are_copies(options.dtype(at::kBFloat16), 0x1p-6);
}

}  // namespace
}  // namespace reformer
