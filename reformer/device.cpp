#include "reformer/device.h"

#include <ATen/Parallel.h>

#include "reformer/base/errors.h"
#include "reformer/base/parallel.h"
#include "reformer/device/device.h"

namespace reformer {

bool cuda_available() { return cuda_is_available(); }

std::string why_no_cuda() { return why_cuda_is_unavailable(); }

void use_threads(int count) {
  require(count >= 1, "use_threads: at least 1 is required, got ", count);
  set_threads(count);
  // LibTorch would otherwise set its own default at its first parallel work.
  at::set_num_threads(count);
}

}  // namespace reformer
