// Long work that may be given up: a prompt of a million tokens that nobody
// waits for any longer.
#pragma once

#include <atomic>
#include <exception>
#include <functional>

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
//
// turn, null: none, is called at each interruption_point of this thread, for
// other work in between, which has neither flag nor turns.
class Interruptible {
 public:
  explicit Interruptible(const std::atomic<bool>* stop,
                         const std::function<void()>* turn = nullptr);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  const std::atomic<bool>* outer_;
  const std::function<void()>* outer_turn_;
};

// Between parts of such work.
void interruption_point();

// Whether somebody wants turns: the work is in parts then that are no longer
// than they must.
bool takes_turns();

// What this thread's work looks at; null where it is not interruptible.
const std::atomic<bool>* interruption_flag();

// Throws Interrupted where there is such a flag and it is true.
void check_interruption(const std::atomic<bool>* stop);

}  // namespace reformer
