// A GPU of less shared memory than there is.
#pragma once

#include "reformer/kernels/cuda/launch.h"

namespace reformer {

class LessSharedMemory {
 public:
  explicit LessSharedMemory(int bytes)
      : before_(kernels::cuda::shared_memory_for_tests.exchange(bytes)) {}
  ~LessSharedMemory() { kernels::cuda::shared_memory_for_tests = before_; }
  LessSharedMemory(const LessSharedMemory&) = delete;
  LessSharedMemory& operator=(const LessSharedMemory&) = delete;

 private:
  int before_;
};

}  // namespace reformer
