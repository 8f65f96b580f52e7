#include "reformer/distributed/communicator_worker.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

#include "reformer/base/errors.h"
#include "reformer/base/parallel.h"
#include "reformer/distributed/process_group.h"

namespace reformer {
namespace {

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Calls body(elements, at) for what the `n` elements from `begin` on have of
// each tensor, where the tensors lie one after the other; `at` counts from
// `begin`.
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

Communicator::Worker::Worker(const RankStore& store,
                             const CommunicatorPlace& of)
    : place(of),
      staged(of.device.is_cuda() && !uses_nccl(of)),
      stream(of.device),
      group(make_group(store, of)) {}

int64_t Communicator::Worker::piece_bytes(at::DeviceType device) {
  return int64_t{device == at::kCPU ? 1 : 8} << 20;
}

int64_t Communicator::Worker::piece(at::ScalarType type) const {
  return piece_bytes(place.device.type()) /
         static_cast<int64_t>(c10::elementSize(type));
}

at::Tensor Communicator::Worker::scratch(size_t which, int64_t numel,
                                         at::ScalarType type) {
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

void Communicator::Worker::all_to_all(at::Tensor to, at::Tensor from,
                                      std::vector<int64_t> to_counts,
                                      std::vector<int64_t> from_counts) {
  group->alltoall_base(to, from, to_counts, from_counts)->wait();
  const auto rank = static_cast<size_t>(place.rank);
  const int64_t kept =
      from_counts.empty() ? from.numel() / place.size : from_counts[rank];
  sent_bytes += (from.numel() - kept) * from.element_size();
}

void Communicator::Worker::all_gather(at::Tensor to, at::Tensor from) {
  group->_allgather_base(to, from)->wait();
  count_sent(from);
}

void Communicator::Worker::count_sent(const at::Tensor& to_each_other) {
  sent_bytes += (place.size - 1) * static_cast<int64_t>(to_each_other.nbytes());
}

void Communicator::Worker::sum(const std::vector<at::Tensor>& tensors,
                               int64_t numel) {
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

void Communicator::Worker::share(
    const std::vector<std::vector<at::Tensor>>& parts, int64_t begin, int64_t n,
    at::ScalarType type) {
  const auto own = scratch(0, n, type);
  const auto all = scratch(1, place.size * n, type);
  for_each_overlap(parts[size_t(place.rank)], begin, n,
                   [&](const at::Tensor& elements, int64_t at) {
                     own.narrow(0, at, elements.numel()).copy_(elements);
                   });
  all_gather(all, own);
  for (int64_t rank = 0; rank < place.size; ++rank) {
    if (rank == place.rank) continue;
    for_each_overlap(
        parts[size_t(rank)], begin, n,
        [&](const at::Tensor& elements, int64_t at) {
          elements.copy_(all.narrow(0, rank * n + at, elements.numel()));
        });
  }
}

void Communicator::Worker::run() {
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

void Communicator::Worker::perform(const Task& task) {
  DeviceEvent end;
  try {
    if (failure) std::rethrow_exception(failure);
    const at::NoGradGuard no_grad;
    stream.run([&] {
      task.ready.delay_current_stream();
      task.work(*this);
      end = DeviceEvent::now(place.device);
      if (place.device.is_cpu()) return;  // it has ended
      device_waits.add([ready = task.ready] { return ready.has_happened(); },
                       [end] { return end.has_happened(); });
    });
  } catch (const Error&) {
    failure = std::current_exception();
  } catch (const std::exception& error) {
    failure = std::make_exception_ptr(LostContact(
        "contact with the other ranks was lost: " + first_line(error.what())));
  }
  {  // before anybody can know: who waited finds it idle
    const std::lock_guard<std::mutex> lock(mutex);
    --unfinished;
  }
  task.state->finish(end, failure);
}

}  // namespace reformer
