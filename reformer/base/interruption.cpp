#include "reformer/base/interruption.h"

#include <utility>

namespace reformer {
namespace {

thread_local const std::atomic<bool>* flag = nullptr;
thread_local const std::function<void()>* turn_of_others = nullptr;

}  // namespace

Interruptible::Interruptible(const std::atomic<bool>* stop,
                             const std::function<void()>* turn)
    : outer_(std::exchange(flag, stop)),
      outer_turn_(std::exchange(turn_of_others, turn)) {}

Interruptible::~Interruptible() {
  flag = outer_;
  turn_of_others = outer_turn_;
}

const std::atomic<bool>* interruption_flag() { return flag; }

void check_interruption(const std::atomic<bool>* stop) {
  if (stop != nullptr && *stop) throw Interrupted();
}

void interruption_point() {
  check_interruption(flag);
  if (turn_of_others == nullptr) return;
  const auto& turn = *turn_of_others;
  const Interruptible others(nullptr);
  turn();
}

bool takes_turns() { return turn_of_others != nullptr; }

}  // namespace reformer
