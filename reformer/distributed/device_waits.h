// How long a device has waited for other ranks, where the host does not.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace reformer {

// Of operations that a stream does one after the other. The host asks for them
// and goes on; what it waits for later may be one of them, or the device's own
// work, which may take long. An operation waits for others from when all that
// it needs of its own device is there until it has ended.
//
// May be used by several threads.
class DeviceWaits {
 public:
  using Happened = std::function<bool()>;

  // The next operation. Neither may wait.
  void add(Happened ready, Happened ended);

  // Seconds for which, as far as calls have seen, the oldest operation that has
  // not ended has waited by `now`; 0: none waits.
  double waiting(double now);

 private:
  void forget_ended();

  std::mutex mutex_;
  std::deque<std::pair<Happened, Happened>> under_way_;
  double since_ = 0;  // the first has been seen to wait; 0: it was not
};

}  // namespace reformer
