// Who is told when a pass comes to a block of the stack and leaves it.
#pragma once

#include <cstdint>

namespace reformer {

class BlockObserver {
 public:
  virtual ~BlockObserver() = default;

  // The block is needed now, `next` after it (-1: none). In a backward pass its
  // gradients are about to be taken.
  virtual void enter(int64_t block, int64_t next, bool backward) = 0;

  // The block is not needed any more; in a backward pass its gradients are
  // complete.
  virtual void leave(int64_t block, bool backward) = 0;
};

}  // namespace reformer
