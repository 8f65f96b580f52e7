// SIGINT and SIGTERM as a wish to stop, not an end.
#pragma once

#include <atomic>

namespace reformer::cli {

// True from the first SIGINT or SIGTERM on. A second one ends the process at
// once. Installs the handlers when first called.
const std::atomic<bool>& stop_requested();

}  // namespace reformer::cli
