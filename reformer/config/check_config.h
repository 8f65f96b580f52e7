// The parts of check(config) (config.h), each throws Error as that does.
#pragma once

#include "reformer/config/config.h"

namespace reformer {

// config.model and config.lsh, but for axial positions.
void check_model(const Config& config);
void check_axial(const ModelConfig& model, int64_t length);

// config.task, with the model and the length that the task takes.
void check_task(const Config& config);

}  // namespace reformer
