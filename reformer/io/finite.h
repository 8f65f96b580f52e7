// Whether numbers are numbers: a model with NaN or infinity in it is of no use.
#pragma once

#include <string>
#include <vector>

#include "reformer/model/parameter.h"

namespace reformer {

// The name of the first tensor that holds NaN or infinity; empty where all are
// finite. Each tensor is read once where it is, and of a device's only the
// answer comes to the host, in one copy.
std::string first_not_finite(const std::vector<NamedTensor>& tensors);

}  // namespace reformer
