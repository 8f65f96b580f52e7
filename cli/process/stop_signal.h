// SIGINT, SIGTERM and SIGHUP as a wish to stop, not an end.
#pragma once

#include <atomic>

namespace reformer::cli {

// True from the first of these signals on. After a SIGINT or SIGTERM the next
// of either ends the process at once, unless it comes within a second: that is
// the same wish, which some send twice. SIGHUP, a terminal that has gone, stays
// ignored where it was (nohup). Installs the handlers when first called.
const std::atomic<bool>& stop_requested();

// Thrown where a command ends because of that wish: the program's status is
// then 128 and the signal's number, as shells have it.
class Interrupted {};

// Throws Interrupted once a stop was requested.
void end_if_stopped();

// 130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP.
int status_of_stop();

}  // namespace reformer::cli
