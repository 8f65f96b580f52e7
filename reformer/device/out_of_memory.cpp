#include "reformer/device/out_of_memory.h"

#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <new>
#include <string>

#include "reformer/base/out_of_memory.h"

namespace reformer {
namespace {

// Debian's SentencePiece and LibTorch both have a FLAGS_minloglevel. The loader
// takes LibTorch's for both, of 4 bytes; the other one's 32 overwrite what lies
// behind it, and LibTorch then aborts where it should throw.
[[maybe_unused]] const bool throws_again = [] {
  FLAGS_caffe2_use_fatal_for_enforce = false;
  return true;
}();

// LibTorch has a type for its own allocator's refusals only. What the host,
// CUDA and cuBLAS refuse it passes on in words.
bool says_out_of_memory(const c10::Error& error) {
  const std::string what = error.what_without_backtrace();
  return what.find("out of memory") != std::string::npos ||
         what.find("can't allocate memory") != std::string::npos ||
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

bool is_supported(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const c10::Error& error) {
    if (is_out_of_memory(error)) throw;
    return false;
  }
}

}  // namespace reformer
