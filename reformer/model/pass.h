// What a pass through the model is told besides its input.
#pragma once

#include <cstdint>

namespace reformer {

struct Pass {
  uint64_t seed = 0;
  uint64_t step = 0;      // keys hashes and dropout; 0 in evaluation
  bool training = false;  // dropout
  int64_t rounds = 0;     // of LSH attention; 0: the config's
  // Where a GPU finds the step when the pass is captured and replayed, in place
  // of `step`.
  const uint64_t* step_on_device = nullptr;
  // Which of the step's examples is the batch's first: each drops elements of
  // its own, the same however a step is cut into batches. Hashes are alike for
  // all of them.
  int64_t first_example = 0;
};

}  // namespace reformer
