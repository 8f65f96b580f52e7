// What a model writes by itself while it trains, and one sequence of what it
// reads.
#pragma once

#include <string>

#include "reformer/tasks/task.h"
#include "reformer/train/learner.h"

namespace reformer {

// train.sample_length tokens of a text model; empty where there are to be none.
std::string sample_of(Learner& learner, const Task& task);

// The first row, without its padding.
Batch first_sequence(const Batch& batch);

}  // namespace reformer
