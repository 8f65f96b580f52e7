// What happens when recording a token's launches fails.
#include "reformer/generate/recorded_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "reformer/base/errors.h"
#include "reformer/base/out_of_memory.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);

// Computes at its first call; the second, which records, throws `fault`.
template <class Fault>
at::Tensor second_token(const Fault& fault) {
  const auto symbols = at::zeros({1}, at::kLong);
  int calls = 0;
  const auto compute = [&](const at::Tensor& given) {
    if (++calls == 2) throw fault;
    return given + 1;
  };
  RecordedStep step(kGpu);
  step.take(symbols, compute);
  return step.take(symbols, compute).cpu();
}

TEST(CudaRecordedStep, ForWantOfMemoryTokensAreComputedAsTheyCome) {
  EXPECT_EQ(second_token(OutOfMemory("none left")).item<int64_t>(), 1);
}

TEST(CudaRecordedStep, AnyOtherErrorIsNotHidden) {
  EXPECT_THROW(second_token(Error("a mistake of ours")), Error);
  EXPECT_THROW(second_token(std::logic_error("another")), std::logic_error);
}

}  // namespace
}  // namespace reformer
