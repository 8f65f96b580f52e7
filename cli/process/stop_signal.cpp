#include "cli/process/stop_signal.h"

#include <time.h>

#include <csignal>
#include <cstdint>

namespace reformer::cli {
namespace {

std::atomic<bool> requested{false};
std::atomic<int> first_signal{0};
std::atomic<int64_t> requested_at{0};  // milliseconds; by SIGINT or SIGTERM

// Of those functions that a handler may call.
int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

void request(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  requested = true;
  // A terminal that is closed sends several: the shell's, the system's when the
  // shell ends, the session's.
  if (signal == SIGHUP) return;
  // One wish may come twice: timeout(1) signals its child and then the group
  // that the child is in.
  const int64_t now = milliseconds();
  int64_t never = 0;
  if (requested_at.compare_exchange_strong(never, now)) return;
  if (now - requested_at < 1000) return;
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

void end_if_stopped() {
  if (stop_requested()) throw Interrupted();
}

int status_of_stop() {
  // None came here, but to another rank.
  return 128 + (first_signal != 0 ? static_cast<int>(first_signal) : SIGTERM);
}

int stop_signal() { return first_signal; }

void forget_stop() {
  requested_at = 0;
  first_signal = 0;
  requested = false;
}

}  // namespace reformer::cli
