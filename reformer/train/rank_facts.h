// What ranks compare before they train or evaluate together.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>

#include "reformer/config/config.h"
#include "reformer/distributed/world.h"
#include "reformer/io/checkpoint.h"
#include "reformer/tasks/task.h"

namespace reformer {

// Where ranks must be alike, lest each have a model of its own: settings, data,
// tokenizer, the machine's kernels and threads, and the checkpoint that they go
// on from.
RankFacts rank_facts(const Config& config, const Task& task, c10::Device device,
                     const std::optional<Checkpoint>& checkpoint);

// Of these the machine's alone.
RankFacts machine_facts(c10::Device device);

}  // namespace reformer
