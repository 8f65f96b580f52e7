// Sizes that cannot fit, refused before anything is allocated or computed.
#pragma once

#include <c10/core/Device.h>

#include "reformer/config/config.h"
#include "reformer/model/placement.h"

namespace reformer {

// Each throws Error that names what is needed at least and what there is. Only
// what certainly cannot work is refused: the least that is needed is compared
// with all the memory there is, free or not.

// The parameters, where they live.
void require_memory_for_parameters(const Config& config,
                                   const Placement& placement);

// A training step: the parameters with their gradients, and the two residual
// streams of a batch.
void require_memory_for_step(const Config& config, const Placement& placement);

// A batch of train.batch sequences, which is made on the host.
void require_memory_for_batch(const TrainConfig& train);

}  // namespace reformer
