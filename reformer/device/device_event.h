// Queues of work on a GPU, and points in them that others can wait for. On a
// CPU everything has happened when it was asked for.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <optional>

namespace reformer {

class DeviceEvent {
 public:
  DeviceEvent() = default;  // has happened

  // After everything that the current stream of `device` was asked for so far.
  static DeviceEvent now(c10::Device device);

  void wait() const;  // the host

  // Does not wait. From any thread.
  bool has_happened() const;

  // What the current stream is asked for from here on waits.
  void delay_current_stream() const;

 private:
  std::shared_ptr<c10::Event> event_;
};

// A queue beside the one that computes.
class SideStream {
 public:
  // LibTorch lends the same few streams again and again. Those to capture on
  // come from another pool, so that nobody else's work is captured with it.
  explicit SideStream(c10::Device device, bool to_capture = false);

  // Calls `work` with this as the current stream.
  void run(const std::function<void()>& work) const;

  void* native_handle() const;  // of a GPU's

 private:
  std::optional<c10::Stream> stream_;  // none on a CPU
};

}  // namespace reformer
