#include "reformer/device/device_event.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace reformer {
namespace {

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

DeviceEvent DeviceEvent::now(c10::Device device) {
  DeviceEvent event;
  if (device.is_cpu()) return event;
  event.event_ = std::make_shared<c10::Event>(device.type());
  event.event_->record(current_stream(device));
  return event;
}

void DeviceEvent::wait() const {
  if (event_) event_->synchronize();
}

// Under the guard, lest a thread that has never chosen a device makes a context
// on the first one.
bool DeviceEvent::has_happened() const {
  if (!event_) return true;
  const c10::DeviceGuard guard(event_->device());
  return event_->query();
}

void DeviceEvent::delay_current_stream() const {
  if (event_) event_->block(current_stream(event_->device()));
}

SideStream::SideStream(c10::Device device, bool to_capture) {
  if (device.is_cpu()) return;
  stream_ = c10::impl::VirtualGuardImpl(device.type())
                .getStreamFromGlobalPool(device, /*isHighPriority=*/to_capture);
}

void SideStream::run(const std::function<void()>& work) const {
  if (!stream_) return work();
  const c10::StreamGuard on_side(*stream_);
  work();
}

void* SideStream::native_handle() const { return stream_->native_handle(); }

}  // namespace reformer
