// What happens when capture a token's launches fails.
#include "reformer/generate/captured_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "reformer/base/errors.h"
#include "reformer/base/out_of_memory.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);

// Computes at its first call; the second, which captures, throws `fault`.
template <class Fault>
at::Tensor second_token(const Fault& fault) {
  const auto tokens = at::zeros({1}, at::kLong);
  int calls = 0;
  const auto compute = [&](const at::Tensor& given) {
    if (++calls == 2) throw fault;
    return given + 1;
  };
  CapturedStep step(kGpu);
  step.take(tokens, compute);
  return step.take(tokens, compute).cpu();
}

TEST(CudaCapturedStep, ForWantOfMemoryTokensAreComputedAsTheyCome) {
  EXPECT_EQ(second_token(OutOfMemory("none left")).item<int64_t>(), 1);
}

TEST(CudaCapturedStep, AnyOtherErrorIsNotHidden) {
  EXPECT_THROW(second_token(Error("a mistake of ours")), Error);
  EXPECT_THROW(second_token(std::logic_error("another")), std::logic_error);
}

}  // namespace
}  // namespace reformer
