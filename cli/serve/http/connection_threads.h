// The threads of the server's connections.
#pragma once

#include <httplib.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace reformer::cli {

// A thread for each connection, as many as there may be; more connections wait.
class ConnectionThreads : public httplib::TaskQueue {
  // void or bool, by the library's version.
  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue(
      std::function<void()>()));

 public:
  explicit ConnectionThreads(size_t most) : most_(most) {}

  Enqueued enqueue(std::function<void()> work) override;
  void shutdown() override;

 private:
  void loop();

  size_t most_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool ended_ = false;
};

}  // namespace reformer::cli
