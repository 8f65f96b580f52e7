#include "reformer/distributed/communicator.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "reformer/base/errors.h"
#include "reformer/base/parallel.h"
#include "reformer/device/device_event.h"
#include "reformer/distributed/process_group.h"

namespace reformer {
namespace {

// What is sent at once, so that memory for it does not grow with what is to be
// sent: large enough that a GPU's links are busy, small beside a CPU's tensors.
int64_t piece_bytes(at::DeviceType device) {
  return int64_t{device == at::kCPU ? 1 : 8} << 20;
}

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Calls body(numbers, at) for what the `n` numbers from `begin` on have of each
// tensor, where the tensors lie one after the other; `at` counts from `begin`.
template <class Body>
void for_each_overlap(const std::vector<at::Tensor>& tensors, int64_t begin,
                      int64_t n, const Body& body) {
  int64_t first = 0;  // of the tensor
  for (const auto& tensor : tensors) {
    const int64_t from = std::max(begin, first);
    const int64_t to = std::min(begin + n, first + tensor.numel());
    if (from < to) {
      body(tensor.view({-1}).narrow(0, from - first, to - from), from - begin);
    }
    first += tensor.numel();
  }
}

bool uses_nccl(const CommunicatorPlace& place) {
  require(place.device.is_cuda() || place.backend != CommunicationKind::kNccl,
          "distributed.backend: gloo or auto is required on a CPU, got nccl");
  return place.device.is_cuda() && place.backend != CommunicationKind::kGloo;
}

// LibTorch 2.11 writes down the last operations of all of a process's groups in
// a map that it changes outside of its lock: groups at work in several threads,
// as a rank's are, ended in segmentation faults now and then. It asks for the
// size once, before it writes the first.
void turn_off_flight_recorder() {
  static const bool once = [] {
    return setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1) == 0;
  }();
  TORCH_INTERNAL_ASSERT(once);
}

c10::intrusive_ptr<c10d::Backend> make_group(const RankStore& store,
                                             const CommunicatorPlace& place) {
  turn_off_flight_recorder();
  const GroupPlace group{
      static_cast<int>(place.rank), static_cast<int>(place.size),
      std::chrono::milliseconds(int64_t(place.timeout * 1000))};
  const auto own =
      c10::make_intrusive<c10d::PrefixStore>(place.name, store.c10d_store());
  try {
    return uses_nccl(place) ? make_nccl_group(own, group)
                            : make_gloo_group(own, group, store.address());
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error("the other ranks cannot be reached: " +
                first_line(error.what()));
  }
}

}  // namespace

// What is known of those who wait.
struct WaitClock {
  std::atomic<double> waited = 0;
  std::atomic<double> since =
      0;  // when the one who waits began; 0: nobody does
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

void Pending::wait() const {
  if (!state_) return;
  auto& clock = *state_->clock;
  const double began = now();
  clock.since = began;
  {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->done; });
  }
  clock.since = 0;
  clock.waited = clock.waited + (now() - began);
  if (state_->failure) std::rethrow_exception(state_->failure);
  state_->end.delay_current_stream();
}

// Owned by the communicator and by its thread, which may outlive it where it
// waits for a rank that does not come.
struct Communicator::Worker {
  struct Task {
    std::function<void(Worker&)> work;
    DeviceEvent ready;
    std::shared_ptr<Pending::State> state;
  };

  Worker(const RankStore& store, const CommunicatorPlace& of)
      : place(of),
        staged(of.device.is_cuda() && !uses_nccl(of)),
        stream(of.device),
        group(make_group(store, of)) {}

  // How many numbers are sent at once.
  int64_t piece(at::ScalarType type) const {
    return piece_bytes(place.device.type()) /
           static_cast<int64_t>(c10::elementSize(type));
  }

  // Memory that is used again by every operation, unless it is more than what
  // is sent at once.
  at::Tensor scratch(size_t which, int64_t numel, at::ScalarType type) {
    auto& kept = kept_scratch[which];
    if (kept.defined() && kept.scalar_type() == type && kept.numel() >= numel) {
      return kept.narrow(0, 0, numel);
    }
    const auto options =
        staged ? at::TensorOptions().dtype(type).pinned_memory(true)
               : at::TensorOptions().dtype(type).device(place.device);
    const auto fresh = at::empty({numel}, options);
    if (numel <= piece(type)) kept = fresh;
    return fresh;
  }

  void all_to_all(at::Tensor to, at::Tensor from,
                  std::vector<int64_t> to_counts = {},
                  std::vector<int64_t> from_counts = {}) {
    group->alltoall_base(to, from, to_counts, from_counts)->wait();
  }

  void all_gather(at::Tensor to, at::Tensor from) {
    group->_allgather_base(to, from)->wait();
  }

  // Of `numel` numbers in all. Each rank adds up a part of them, which it gets
  // from all, and gives it to all: as many bytes as a ring moves, in an order
  // that does not depend on who comes first.
  void sum(const std::vector<at::Tensor>& tensors, int64_t numel) {
    const int64_t ranks = place.size;
    const int64_t part = (numel + ranks - 1) / ranks;
    const auto type = tensors[0].scalar_type();
    const auto all = scratch(0, ranks * part, type);
    const auto parts = scratch(1, ranks * part, type);
    int64_t at = 0;
    for (const auto& tensor : tensors) {
      all.narrow(0, at, tensor.numel()).copy_(tensor);
      at += tensor.numel();
    }
    all.narrow(0, at, ranks * part - at).zero_();
    all_to_all(parts, all);
    const auto sum = parts.narrow(0, 0, part);
    for (int64_t rank = 1; rank < ranks; ++rank) {
      sum.add_(parts.narrow(0, rank * part, part));
    }
    all_gather(all, sum);
    at = 0;
    for (const auto& tensor : tensors) {
      tensor.copy_(all.narrow(0, at, tensor.numel()));
      at += tensor.numel();
    }
  }

  // Of each rank's numbers, one after the other, the `n` from `begin` on; those
  // that it does not have are whatever they are.
  void share(const std::vector<std::vector<at::Tensor>>& parts, int64_t begin,
             int64_t n, at::ScalarType type) {
    const auto own = scratch(0, n, type);
    const auto all = scratch(1, place.size * n, type);
    for_each_overlap(parts[size_t(place.rank)], begin, n,
                     [&](const at::Tensor& numbers, int64_t at) {
                       own.narrow(0, at, numbers.numel()).copy_(numbers);
                     });
    all_gather(all, own);
    for (int64_t rank = 0; rank < place.size; ++rank) {
      if (rank == place.rank) continue;
      for_each_overlap(
          parts[size_t(rank)], begin, n,
          [&](const at::Tensor& numbers, int64_t at) {
            numbers.copy_(all.narrow(0, rank * n + at, numbers.numel()));
          });
    }
  }

  void run() {
    at::init_num_threads();
    set_threads(1);  // the others compute meanwhile
    while (true) {
      Task task;
      {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return ended || !tasks.empty(); });
        if (tasks.empty()) return;
        task = std::move(tasks.front());
        tasks.pop_front();
      }
      perform(task);
    }
  }

  void perform(const Task& task) {
    DeviceEvent end;
    try {
      if (failure) std::rethrow_exception(failure);
      const at::NoGradGuard no_grad;
      stream.run([&] {
        task.ready.delay_current_stream();
        task.work(*this);
        end = DeviceEvent::now(place.device);
      });
    } catch (const Error&) {
      failure = std::current_exception();
    } catch (const std::exception& error) {
      failure = std::make_exception_ptr(
          LostContact("contact with the other ranks was lost: " +
                      first_line(error.what())));
    }
    {  // before anybody can know: who waited finds it idle
      const std::lock_guard<std::mutex> lock(mutex);
      --unfinished;
    }
    task.state->finish(end, failure);
  }

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
  std::atomic<int64_t> begun = 0;
  std::thread thread;
};

Communicator::Communicator(const RankStore& store,
                           const CommunicatorPlace& place)
    : worker_(std::make_shared<Worker>(store, place)) {
  worker_->thread = std::thread([worker = worker_] { worker->run(); });
}

Communicator::~Communicator() {
  auto& worker = *worker_;
  bool idle = false;
  {
    const std::lock_guard<std::mutex> lock(worker.mutex);
    worker.ended = true;
    idle = worker.unfinished == 0;
    if (!idle) worker.tasks.clear();
    worker.changed.notify_all();
  }
  if (!worker.thread.joinable()) return;
  if (idle) {
    worker.thread.join();
  } else {
    worker.thread.detach();
  }
  // c10d's own threads would be waited for as long as they wait for others.
  if (!idle || worker.failure) worker.group.release();
}

// Both of Worker::scratch.
int64_t Communicator::kept_bytes(at::DeviceType device) {
  return 2 * piece_bytes(device);
}

int64_t Communicator::scratch_bytes() const {
  int64_t bytes = 0;
  for (const auto& kept : worker_->kept_scratch) {
    if (kept.defined()) bytes += static_cast<int64_t>(kept.nbytes());
  }
  return bytes;
}

int64_t Communicator::rank() const { return worker_->place.rank; }
int64_t Communicator::size() const { return worker_->place.size; }
at::Device Communicator::device() const { return worker_->place.device; }
double Communicator::waited() const { return worker_->clock->waited; }

double Communicator::waiting() const {
  const double since = worker_->clock->since;
  return since == 0 ? 0 : now() - since;
}

void Communicator::set_timeout(double seconds) {
  worker_->group->setTimeout(
      std::chrono::milliseconds(int64_t(seconds * 1000)));
}

int64_t Communicator::begun() const { return worker_->begun; }

Pending Communicator::submit(std::function<void(Worker&)> work) {
  auto state = std::make_shared<Pending::State>();
  state->clock = worker_->clock;
  ++worker_->begun;
  const std::lock_guard<std::mutex> lock(worker_->mutex);
  worker_->tasks.push_back(
      {std::move(work), DeviceEvent::now(worker_->place.device), state});
  ++worker_->unfinished;
  worker_->changed.notify_all();
  return Pending(state);
}

Pending Communicator::sum(std::vector<at::Tensor> tensors) {
  if (tensors.empty()) return {};
  return submit([tensors = std::move(tensors)](Worker& worker) {
    const int64_t ranks = worker.place.size;  // of which each adds up as many
    const int64_t most = worker.piece(tensors[0].scalar_type()) / ranks * ranks;
    std::vector<at::Tensor> piece;
    int64_t numel = 0;
    std::vector<at::Tensor> dense;
    for (const auto& tensor : tensors) dense.push_back(tensor.contiguous());
    for (const auto& tensor : dense) {
      TORCH_INTERNAL_ASSERT(tensor.scalar_type() == dense[0].scalar_type());
      const auto numbers = tensor.view({-1});
      for (int64_t at = 0; at < numbers.numel();) {
        const int64_t n = std::min(numbers.numel() - at, most - numel);
        piece.push_back(numbers.narrow(0, at, n));
        at += n;
        numel += n;
        if (numel < most) continue;
        worker.sum(piece, numel);
        piece.clear();
        numel = 0;
      }
    }
    if (numel > 0) worker.sum(piece, numel);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].is_same(dense[i])) tensors[i].copy_(dense[i]);
    }
  });
}

Pending Communicator::exchange(const at::Tensor& to, const at::Tensor& from,
                               std::vector<int64_t> to_counts,
                               std::vector<int64_t> from_counts) {
  TORCH_INTERNAL_ASSERT(to.is_contiguous() && from.is_contiguous());
  // As bytes: Gloo does not know all types.
  for (auto* counts : {&to_counts, &from_counts}) {
    for (auto& count : *counts) count *= to.element_size();
  }
  return submit([to, from, to_counts = std::move(to_counts),
                 from_counts = std::move(from_counts)](Worker& worker) {
    const auto into = to.view({-1}).view(at::kByte);
    const auto out = from.view({-1}).view(at::kByte);
    if (!worker.staged) {
      return worker.all_to_all(into, out, to_counts, from_counts);
    }
    const auto here = worker.scratch(0, into.numel(), into.scalar_type());
    const auto there = worker.scratch(1, out.numel(), out.scalar_type());
    there.copy_(out);
    worker.all_to_all(here, there, to_counts, from_counts);
    into.copy_(here);
  });
}

Pending Communicator::broadcast(std::vector<at::Tensor> tensors, int64_t from) {
  return submit([tensors = std::move(tensors), from](Worker& worker) {
    c10d::BroadcastOptions options;
    options.rootRank = static_cast<int>(from);
    for (const auto& tensor : tensors) {
      const auto dense = tensor.contiguous();
      const auto all = dense.view({-1});
      const int64_t most = worker.piece(all.scalar_type());
      for (int64_t at = 0; at < all.numel(); at += most) {
        const int64_t n = std::min(most, all.numel() - at);
        const auto sent = worker.scratch(0, n, all.scalar_type());
        sent.copy_(all.narrow(0, at, n));
        std::vector<at::Tensor> list = {sent};
        worker.group->broadcast(list, options)->wait();
        all.narrow(0, at, n).copy_(sent);
      }
      if (!tensor.is_same(dense)) tensor.copy_(dense);
    }
  });
}

Pending Communicator::share(std::vector<std::vector<at::Tensor>> parts) {
  return submit([parts = std::move(parts)](Worker& worker) {
    int64_t most = 0;
    auto type = at::ScalarType::Undefined;
    for (const auto& part : parts) {
      int64_t numel = 0;
      for (const auto& tensor : part) {
        TORCH_INTERNAL_ASSERT(tensor.is_contiguous());
        numel += tensor.numel();
        type = tensor.scalar_type();
      }
      most = std::max(most, numel);
    }
    if (most == 0) return;
    const auto ranks = static_cast<int64_t>(parts.size());
    const int64_t size =
        std::min(most, std::max<int64_t>(1, worker.piece(type) / ranks));
    for (int64_t begin = 0; begin < most; begin += size) {
      worker.share(parts, begin, std::min(size, most - begin), type);
    }
  });
}

at::Tensor Communicator::gathered(const at::Tensor& x) {
  auto sizes = x.sizes().vec();
  sizes.insert(sizes.begin(), size());
  const auto all = at::empty(sizes, x.options());
  submit([&](Worker& worker) {
    const auto own = worker.scratch(0, x.numel(), x.scalar_type());
    const auto others = worker.scratch(1, all.numel(), all.scalar_type());
    own.copy_(x.reshape({-1}));
    worker.all_gather(others, own);
    all.copy_(others.view(all.sizes()));
  }).wait();
  return all;
}

std::vector<std::string> Communicator::gathered(const std::string& text) {
  const auto length = at::empty({1}, at::kLong);
  *length.mutable_data_ptr<int64_t>() = static_cast<int64_t>(text.size());
  const auto lengths =
      gathered(length.to(worker_->place.device)).to(at::kCPU).view({-1});
  const int64_t longest = lengths.max().item<int64_t>();
  const auto padded = at::empty({longest}, at::kByte);
  std::copy(text.begin(), text.end(), padded.mutable_data_ptr<uint8_t>());
  const auto all = gathered(padded.to(worker_->place.device)).to(at::kCPU);
  std::vector<std::string> texts;
  for (int64_t rank = 0; rank < size(); ++rank) {
    const auto* begin = all.const_data_ptr<uint8_t>() + rank * longest;
    texts.emplace_back(begin, begin + lengths[rank].item<int64_t>());
  }
  return texts;
}

void Communicator::barrier() {
  gathered(at::empty(
      {1}, at::TensorOptions().dtype(at::kByte).device(worker_->place.device)));
}

void Communicator::shut_down() {
  submit([](Worker& worker) { worker.group->shutdown(); }).wait();
}

}  // namespace reformer
