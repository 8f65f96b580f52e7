#include "cli/stop_signal.h"

#include <time.h>

#include <csignal>
#include <cstdint>

namespace reformer::cli {
namespace {

std::atomic<bool> requested{false};
std::atomic<int64_t> requested_at{0};  // milliseconds

// Of those functions that a handler may call.
int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

void request(int signal) {
  if (!requested.exchange(true)) {
    requested_at = milliseconds();
    return;
  }
  // One wish may come twice: timeout(1) signals its child and then the group
  // that the child is in; of a terminal that is closed, the shell tells and,
  // when it ends, the system.
  if (signal == SIGHUP || milliseconds() - requested_at < 1000) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// A program under nohup stays when its terminal goes.
bool is_ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

const std::atomic<bool>& stop_requested() {
  static const bool installed = [] {
    std::signal(SIGINT, request);
    std::signal(SIGTERM, request);
    if (!is_ignored(SIGHUP)) std::signal(SIGHUP, request);
    return true;
  }();
  static_cast<void>(installed);
  return requested;
}

}  // namespace reformer::cli
