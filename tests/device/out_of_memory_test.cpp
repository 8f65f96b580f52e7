#include "reformer/device/out_of_memory.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>

#include "reformer/base/out_of_memory.h"

namespace reformer {
namespace {

TEST(OutOfMemory, IsKnownWhoeverThrowsIt) {
  EXPECT_TRUE(is_out_of_memory(OutOfMemory("cudaGraphInstantiate: ...")));
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  EXPECT_TRUE(is_out_of_memory(c10::OutOfMemoryError({}, "")));
  EXPECT_TRUE(is_out_of_memory(c10::Error({}, "CUDA error: out of memory")));
  EXPECT_TRUE(is_out_of_memory(c10::Error(
      {}, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling ...")));
}

// And does not abort, as it did beside SentencePiece.
TEST(OutOfMemory, IsThrownByTheHostsAllocator) {
  try {
    at::empty({int64_t{1} << 50}, at::kByte);
    FAIL() << "a pebibyte was there";
  } catch (const std::exception& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
}

TEST(OutOfMemory, IsNothingElse) {
  EXPECT_FALSE(is_out_of_memory(Error("lsh_buckets: too many rounds")));
  EXPECT_FALSE(is_out_of_memory(std::runtime_error("out of memory")));
  EXPECT_FALSE(is_out_of_memory(c10::Error(
      {}, "CUDA error: operation not permitted when stream is capturing")));
  EXPECT_FALSE(is_out_of_memory(c10::IndexError({}, "index out of range")));
}

// A GPU that is full for a moment would pass for one without cuDNN for good.
TEST(OutOfMemory, IsNoWantOfSupport) {
  EXPECT_TRUE(is_supported([] {}));
  EXPECT_FALSE(is_supported([] {
    throw c10::Error({}, "No available kernel. Aborting execution.");
  }));
  EXPECT_THROW(
      is_supported([] { throw c10::Error({}, "CUDA error: out of memory"); }),
      c10::Error);
  EXPECT_THROW(is_supported([] { throw c10::OutOfMemoryError({}, ""); }),
               c10::OutOfMemoryError);
}

}  // namespace
}  // namespace reformer
