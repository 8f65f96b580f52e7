#include "reformer/ops/device_event.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace reformer {

DeviceEvent DeviceEvent::now(c10::Device device) {
  DeviceEvent event;
  event.event_ = std::make_shared<c10::Event>(device.type());
  event.event_->record(
      c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  return event;
}

void DeviceEvent::wait() const {
  if (event_) event_->synchronize();
}

}  // namespace reformer
