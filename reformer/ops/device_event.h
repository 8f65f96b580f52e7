// A point in a GPU's queue of work that the host can wait for.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <memory>

namespace reformer {

class DeviceEvent {
 public:
  DeviceEvent() = default;  // has happened

  // After everything that the current stream of `device` was asked for so far.
  static DeviceEvent now(c10::Device device);

  void wait() const;

 private:
  std::shared_ptr<c10::Event> event_;
};

}  // namespace reformer
