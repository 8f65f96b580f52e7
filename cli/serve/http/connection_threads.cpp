#include "cli/serve/http/connection_threads.h"

namespace reformer::cli {

ConnectionThreads::Enqueued ConnectionThreads::enqueue(
    std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
    if (waiting_.size() > idle_ && threads_.size() < most_) {
      threads_.emplace_back([this] { loop(); });
    }
  }
  wake_.notify_one();
  return static_cast<Enqueued>(true);
}

void ConnectionThreads::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ConnectionThreads::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    const auto work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace reformer::cli
