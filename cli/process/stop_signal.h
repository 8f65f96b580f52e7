// SIGINT, SIGTERM and SIGHUP as a wish to stop, not an end.
#pragma once

#include <atomic>

#include "reformer/base/interruption.h"

namespace reformer::cli {

// True from the first of these signals on. After a SIGINT or SIGTERM the next
// of either ends the process at once, unless it comes within a second: that is
// the same wish, which some send twice. SIGHUP, a terminal that has gone, stays
// ignored where it was (nohup). Installs the handlers when first called.
const std::atomic<bool>& stop_requested();

// Throws Interrupted once a stop was requested.
void end_if_stopped();

// The program's status where Interrupted ended its command, as shells have it:
// 130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP; 143 where another rank
// of the run was told to stop.
int status_of_stop();

// The first of these signals since the last forget_stop; 0: none came.
int stop_signal();

// As if none had come: what it was to stop has stopped, the program goes on.
void forget_stop();

}  // namespace reformer::cli
