#include "reformer/base/interruption.h"

#include <utility>

namespace reformer {
namespace {

thread_local const std::atomic<bool>* flag = nullptr;

}  // namespace

Interruptible::Interruptible(const std::atomic<bool>* stop)
    : outer_(std::exchange(flag, stop)) {}

Interruptible::~Interruptible() { flag = outer_; }

const std::atomic<bool>* interruption_flag() { return flag; }

void check_interruption(const std::atomic<bool>* stop) {
  if (stop != nullptr && *stop) throw Interrupted();
}

void interruption_point() { check_interruption(flag); }

}  // namespace reformer
