#include "reformer/device/deterministic.h"

#include <ATen/Context.h>

#include <mutex>

namespace reformer {
namespace {

// How it was before the first of those that live.
struct Switch {
  std::mutex mutex;
  int alive = 0;
  bool was_on = false;
  bool only_warned = false;
  bool filled = false;
};

Switch& the_switch() {
  static Switch one;
  return one;
}

}  // namespace

Deterministic::Deterministic() {
  Switch& all = the_switch();
  const std::lock_guard lock(all.mutex);
  if (all.alive++ > 0) return;
  auto& context = at::globalContext();
  all.was_on = context.deterministicAlgorithms();
  all.only_warned = context.deterministicAlgorithmsWarnOnly();
  all.filled = context.deterministicFillUninitializedMemory();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  // Nobody reads what nobody wrote; filling it would cost a pass over memory.
  context.setDeterministicFillUninitializedMemory(false);
}

Deterministic::~Deterministic() {
  Switch& all = the_switch();
  const std::lock_guard lock(all.mutex);
  if (--all.alive > 0) return;
  auto& context = at::globalContext();
  context.setDeterministicAlgorithms(all.was_on, all.only_warned);
  context.setDeterministicFillUninitializedMemory(all.filled);
}

}  // namespace reformer
