// A learner's state as a checkpoint of a run's folder.
#pragma once

#include <cstdint>
#include <string>

#include "reformer/io/checkpoint.h"
#include "reformer/train/learner.h"

namespace reformer {

// Whose bits differ: "avx512", or the GPU's name.
std::string kernels_on(at::Device device);

// What the learner is after `step` steps: config, parameters, optimizer state,
// and the machine whose bits they are. The tensors share its memory, where
// ranks do not share its optimizer's state. Of several ranks all call it, and
// the first has all of it.
Checkpoint checkpoint_of(Learner& learner, int64_t step);

// Saves that, with Checkpoint::tokenizer, as the best of `directory`, outside
// of any training loop. The folder is new or empty, or holds checkpoints of the
// same config that are not newer; else throws Error, and nothing in it has
// changed.
void save_run(const std::string& directory, Learner& learner, int64_t step,
              const std::string& tokenizer = "");

}  // namespace reformer
