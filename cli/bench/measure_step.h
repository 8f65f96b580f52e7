// What a whole training step costs: seconds, and memory at its peak.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "reformer/config/config.h"
#include "reformer/distributed/world.h"

namespace reformer::cli {

struct StepMeasurement {
  double step_s = 0;
  double tokens_per_s = 0;
  int64_t peak_bytes = 0;
  int64_t parameters = 0;
  bool captured = false;  // steps replay one launch
  int64_t ranks = 1;
  double rank_wait =
      0;  // share of the time in which this rank waits for others
  int64_t sent_bytes = 0;       // a step, by this rank to others
  int64_t optimizer_bytes = 0;  // the state that this rank keeps
  std::string profile;          // where asked for
};

// Everything that a step of `reformer train` does, on random tokens: forward,
// backward, clipping, optimizer. The first warms up, and makes the optimizer's
// state; the median of `repeats` counts (0: enough of them). With `profile`,
// also where a GPU's time goes, by kernel. The ranks of a `world` call it alike
// and take a step together, 5 of them for a median where `repeats` is 0.
StepMeasurement measure_step(const Config& config, at::Device device,
                             int64_t repeats, bool profile = false,
                             World* world = nullptr);

}  // namespace reformer::cli
