// The same bits every time from LibTorch's operators on a GPU.
#pragma once

namespace reformer {

// While one of these lives, operators of LibTorch that add in any order on a
// GPU, and have a way to add in a fixed one, take that. The switch is
// LibTorch's own and global to the process: several threads may have one each,
// and the last to end puts it back. What other threads ask of LibTorch
// meanwhile follows it too; on a GPU an operator without a fixed order then
// throws.
class Deterministic {
 public:
  Deterministic();
  ~Deterministic();
  Deterministic(const Deterministic&) = delete;
  Deterministic& operator=(const Deterministic&) = delete;
};

}  // namespace reformer
