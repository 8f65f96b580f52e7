// The step that keys a draw: given with the launch or, where launches are
// captured and replayed (CudaGraph), read from memory each time.
#pragma once

namespace reformer::kernels::cuda {

template <class Key>
__device__ Key live(Key key) {
  if (key.step_on_device != nullptr) key.step = *key.step_on_device;
  return key;
}

}  // namespace reformer::kernels::cuda
