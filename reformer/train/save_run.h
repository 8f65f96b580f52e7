// A learner's state as a checkpoint of a run's folder.
#pragma once

#include <cstdint>
#include <string>

#include "reformer/distributed/world.h"
#include "reformer/io/checkpoint.h"
#include "reformer/tasks/task.h"
#include "reformer/train/learner.h"

namespace reformer {

// Whose bits differ: "avx512", or the GPU's name.
std::string kernels_on(at::Device device);

// Of the task's tokenizer; empty where its tokens are bytes or numbers.
std::string tokenizer_file(const Task& task);

// What the learner is after `step` steps: config, parameters, optimizer state
// (of ranks that share it this one's part), and the machine whose bits they
// are. The tensors share its memory.
Checkpoint checkpoint_of(Learner& learner, int64_t step);

// Of ranks that share the optimizer's state: as save_checkpoint, but each
// writes its part, all at the same time, and none has all of it. All of them
// call it, each with its own checkpoint_of; the first one holds the run's lock.
// Where one of them fails all throw CommonError that names it, or NotFinite,
// and what was there is left.
void save_in_parts(const std::string& directory, const Checkpoint& own,
                   bool best, World& world);

// Saves that, with Checkpoint::tokenizer, as the best of `directory`, outside
// of any training loop. The folder is new or empty, or holds checkpoints of the
// same config that are not newer; else throws Error, and nothing in it has
// changed.
void save_run(const std::string& directory, Learner& learner, int64_t step,
              const std::string& tokenizer = "");

}  // namespace reformer
