#include "cli/stop_signal.h"

#include <csignal>

namespace reformer::cli {
namespace {

std::atomic<bool> requested{false};

void request(int signal) {
  requested = true;
  // A terminal that is closed sends two: the shell's, and the system's when the
  // shell ends.
  if (signal == SIGHUP) return;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
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
