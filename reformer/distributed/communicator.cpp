#include "reformer/distributed/communicator.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>

#include "reformer/base/clock.h"
#include "reformer/distributed/communicator_worker.h"

namespace reformer {
void Pending::wait() const {
  if (!state_) return;
  auto& clock = *state_->clock;
  const double began = steady_seconds();
  clock.since = began;
  {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->done; });
  }
  clock.since = 0;
  clock.waited = clock.waited + (steady_seconds() - began);
  if (state_->failure) std::rethrow_exception(state_->failure);
  state_->end.delay_current_stream();
}

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
  return 2 * Worker::piece_bytes(device);
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
  const double now = steady_seconds();
  const double since = worker_->clock->since;
  const double host = since == 0 ? 0 : now - since;
  try {
    return std::max(host, worker_->device_waits.waiting(now));
  } catch (const std::exception&) {  // the device is lost: its rank will say so
    return host;
  }
}

void Communicator::set_timeout(double seconds) {
  worker_->group->setTimeout(
      std::chrono::milliseconds(int64_t(seconds * 1000)));
}

int64_t Communicator::sent_bytes() const { return worker_->sent_bytes; }

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
        if (from == worker.place.rank) worker.count_sent(sent);
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
