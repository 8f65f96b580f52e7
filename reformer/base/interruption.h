// Long work that may be given up: a prompt of a million tokens that nobody
// waits for any longer.
#pragma once

#include <atomic>
#include <exception>

namespace reformer {

// Thrown where work was given up because somebody wished so: no error. What it
// was computing is of no use.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// While one exists, parallel_tasks and interruption_point throw Interrupted on
// this thread once `stop` is true; null: they do not. The inner of two counts.
// For work without side effects beyond what its caller throws away: of a
// kernel's tasks, some will have run.
class Interruptible {
 public:
  explicit Interruptible(const std::atomic<bool>* stop);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  const std::atomic<bool>* outer_;
};

// Between parts of such work.
void interruption_point();

// What this thread's work looks at; null where it is not interruptible.
const std::atomic<bool>* interruption_flag();

// Throws Interrupted where there is such a flag and it is true.
void check_interruption(const std::atomic<bool>* stop);

}  // namespace reformer
