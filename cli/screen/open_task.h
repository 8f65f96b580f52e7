// The task of a config, with a word on what is done while its data is decoded.
#pragma once

#include <atomic>
#include <memory>

#include "reformer/tasks/task.h"

namespace reformer::cli {

// As make_task, with progress on stderr. Throws Interrupted when `stop`
// becomes true while data is decoded.
std::unique_ptr<Task> open_task(
    const Config& config, const std::atomic<bool>* stop = nullptr,
    std::shared_ptr<const Tokenizer> tokenizer = nullptr);

// As task_tokenizer, of a new run: sets config.model.vocabulary, with a note
// where that was another number. Likewise.
std::shared_ptr<const Tokenizer> open_tokenizer(
    Config& config, const std::atomic<bool>* stop = nullptr);

}  // namespace reformer::cli
