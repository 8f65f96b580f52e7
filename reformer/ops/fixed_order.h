// The same bits every time from LibTorch's operators on a GPU.
#pragma once

#include <ATen/Context.h>

namespace reformer {

// While one of these lives, operators of LibTorch that add in any order on a
// GPU, and have a way to add in a fixed one, take that. The switch is
// LibTorch's own and global to the process.
class FixedOrder {
 public:
  FixedOrder()
      : was_on_(at::globalContext().deterministicAlgorithms()),
        only_warned_(at::globalContext().deterministicAlgorithmsWarnOnly()),
        filled_(at::globalContext().deterministicFillUninitializedMemory()) {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    // Nobody reads what nobody wrote; filling it would cost a pass over memory.
    at::globalContext().setDeterministicFillUninitializedMemory(false);
  }
  ~FixedOrder() {
    at::globalContext().setDeterministicAlgorithms(was_on_, only_warned_);
    at::globalContext().setDeterministicFillUninitializedMemory(filled_);
  }
  FixedOrder(const FixedOrder&) = delete;
  FixedOrder& operator=(const FixedOrder&) = delete;

 private:
  bool was_on_;
  bool only_warned_;
  bool filled_;
};

}  // namespace reformer
