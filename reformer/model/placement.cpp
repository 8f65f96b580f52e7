#include "reformer/model/placement.h"

#include "reformer/base/errors.h"

namespace reformer {

Placement placement_on(at::Device device, Precision precision) {
  const bool on_cpu = device.is_cpu();
  require(
      precision != Precision::kBfloat16 || !on_cpu,
      "train.precision: bfloat16 needs a GPU; on a CPU use float32 or auto");
  const bool half = precision == Precision::kBfloat16 ||
                    (precision == Precision::kAuto && !on_cpu);
  return {device, half ? at::kBFloat16 : at::kFloat};
}

Placement placement_of_trained(at::Device device, Precision precision) {
  return placement_on(device,
                      device.is_cpu() ? Precision::kFloat32 : precision);
}

Placement placement_for_use(at::Device device, Precision precision) {
  auto placement = placement_of_trained(device, precision);
  placement.matrices = placement.compute;
  return placement;
}

}  // namespace reformer
