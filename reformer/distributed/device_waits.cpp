#include "reformer/distributed/device_waits.h"

namespace reformer {

void DeviceWaits::add(Happened ready, Happened ended) {
  const std::lock_guard<std::mutex> lock(mutex_);
  forget_ended();  // lest they become many where nobody asks
  under_way_.emplace_back(std::move(ready), std::move(ended));
}

void DeviceWaits::forget_ended() {
  while (!under_way_.empty() && under_way_.front().second()) {
    under_way_.pop_front();
    since_ = 0;
  }
}

double DeviceWaits::waiting(double now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  forget_ended();
  if (under_way_.empty() || !under_way_.front().first()) return 0;
  if (since_ == 0) since_ = now;
  return now - since_;
}

}  // namespace reformer
