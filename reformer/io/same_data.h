// Whether a run that goes on still has the data that it began with.
#pragma once

#include <string>
#include <vector>

#include "reformer/tasks/task.h"

namespace reformer {

// Names what has changed: which setting, how many bytes then and now. Empty
// where all is as it was, or nobody knows: checkpoints of older programs do not
// tell.
std::string changed_data(const std::vector<DataIdentity>& then,
                         const std::vector<DataIdentity>& now);

}  // namespace reformer
