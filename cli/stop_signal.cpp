#include "cli/stop_signal.h"

#include <csignal>

namespace reformer::cli {
namespace {

std::atomic<bool> requested{false};

void request(int signal) {
  requested = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& stop_requested() {
  static const bool installed = [] {
    std::signal(SIGINT, request);
    std::signal(SIGTERM, request);
    return true;
  }();
  static_cast<void>(installed);
  return requested;
}

}  // namespace reformer::cli
