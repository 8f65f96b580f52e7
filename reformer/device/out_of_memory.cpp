#include "reformer/device/out_of_memory.h"

#include <c10/util/Exception.h>

#include <new>
#include <string>

#include "reformer/base/out_of_memory.h"

namespace reformer {
namespace {

// LibTorch has a type for its own allocator's refusals only. What CUDA and
// cuBLAS refuse it passes on in words.
bool says_out_of_memory(const c10::Error& error) {
  const std::string what = error.what_without_backtrace();
  return what.find("out of memory") != std::string::npos ||
         what.find("CUBLAS_STATUS_ALLOC_FAILED") != std::string::npos;
}

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const OutOfMemory*>(&error) != nullptr ||
      dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    return true;
  }
  const auto* other = dynamic_cast<const c10::Error*>(&error);
  return other != nullptr && says_out_of_memory(*other);
}

}  // namespace reformer
