// The task of a config, with a word on what is done while its data is decoded.
#pragma once

#include <atomic>
#include <memory>

#include "reformer/tasks/task.h"

namespace reformer::cli {

// As make_task, with progress on stderr. Throws Interrupted when `stop`
// becomes true while data is decoded.
std::unique_ptr<Task> open_task(const Config& config,
                                const std::atomic<bool>* stop = nullptr);

}  // namespace reformer::cli
