// A task's training batches in their order, prepared ahead for a GPU.
#pragma once

#include <future>
#include <vector>

#include "reformer/tasks/task.h"

namespace reformer {

class BatchSource {
 public:
  // Batches of `task`, `accumulate` a step, from the `first` on. With `ahead`,
  // for a GPU, they are made by another thread while the last ones are used,
  // and lie in pinned memory.
  BatchSource(const Task& task, int64_t accumulate, int64_t first, bool ahead);

  std::vector<Batch> next();

  // How many batches were given out, from the task's beginning.
  int64_t position() const { return position_; }

 private:
  std::vector<Batch> made(int64_t position) const;

  const Task& task_;
  const int64_t accumulate_;
  const bool ahead_;
  int64_t position_;
  std::future<std::vector<Batch>> coming_;
};

}  // namespace reformer
