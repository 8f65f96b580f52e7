// The thread that does a communicator's operations, one after the other, and
// what they are on their ranks' connections.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "reformer/device/device_event.h"
#include "reformer/distributed/communicator.h"
#include "reformer/distributed/device_waits.h"

namespace reformer {

// What is known of those who wait.
struct WaitClock {
  std::atomic<double> waited = 0;
  // When the one who waits began; 0: nobody does.
  std::atomic<double> since = 0;
};

struct Pending::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr failure;
  DeviceEvent end;
  std::shared_ptr<WaitClock> clock;

  void finish(const DeviceEvent& event, std::exception_ptr fault) {
    const std::lock_guard<std::mutex> lock(mutex);
    end = event;
    failure = std::move(fault);
    done = true;
    changed.notify_all();
  }
};

// Owned by the communicator and by its thread, which may outlive it where it
// waits for a rank that does not come.
struct Communicator::Worker {
  struct Task {
    std::function<void(Worker&)> work;
    DeviceEvent ready;
    std::shared_ptr<Pending::State> state;
  };

  // Waits for all ranks of the group. Throws Error.
  Worker(const RankStore& store, const CommunicatorPlace& of);

  // What is sent at once, so that memory for it does not grow with what is to
  // be sent: large enough that a GPU's links are busy, small beside a CPU's
  // tensors.
  static int64_t piece_bytes(at::DeviceType device);

  // How many elements are sent at once.
  int64_t piece(at::ScalarType type) const;

  // Memory that is used again by every operation, unless it is more than what
  // is sent at once.
  at::Tensor scratch(size_t which, int64_t numel, at::ScalarType type);

  void all_to_all(at::Tensor to, at::Tensor from,
                  std::vector<int64_t> to_counts = {},
                  std::vector<int64_t> from_counts = {});
  void all_gather(at::Tensor to, at::Tensor from);
  void count_sent(const at::Tensor& to_each_other);

  // Of `numel` elements in all. Each rank adds up a part of them, which it gets
  // from all, and gives it to all: as many bytes as a ring moves, in an order
  // that does not depend on who comes first.
  void sum(const std::vector<at::Tensor>& tensors, int64_t numel);

  // Of each rank's elements, one after the other, the `n` from `begin` on;
  // those that it does not have are whatever they are.
  void share(const std::vector<std::vector<at::Tensor>>& parts, int64_t begin,
             int64_t n, at::ScalarType type);

  void run();  // what the thread does
  void perform(const Task& task);

  const CommunicatorPlace place;
  const bool staged;  // through the host
  const SideStream stream;
  c10::intrusive_ptr<c10d::Backend> group;
  at::Tensor kept_scratch[2];
  std::exception_ptr failure;  // of the thread's

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Task> tasks;
  int64_t unfinished = 0;
  bool ended = false;

  std::shared_ptr<WaitClock> clock = std::make_shared<WaitClock>();
  DeviceWaits device_waits;
  std::atomic<int64_t> begun = 0;
  std::atomic<int64_t> sent_bytes = 0;
  std::thread thread;
};

}  // namespace reformer
