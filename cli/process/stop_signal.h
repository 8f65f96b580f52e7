// SIGINT, SIGTERM and SIGHUP as a wish to stop, not an end.
#pragma once

#include <atomic>

namespace reformer::cli {

// True from the first of these signals on. After a SIGINT or SIGTERM the next
// of either ends the process at once, unless it comes within a second: that is
// the same wish, which some send twice. SIGHUP, a terminal that has gone, stays
// ignored where it was (nohup). Installs the handlers when first called.
const std::atomic<bool>& stop_requested();

}  // namespace reformer::cli
