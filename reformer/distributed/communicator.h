// What ranks of a group do together: sums, exchanges, words.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/config/choices.h"
#include "reformer/distributed/rank_store.h"

namespace reformer {

// An operation could not be done, because another rank does not answer.
class LostContact : public Error {
 public:
  using Error::Error;
};

// Something that goes on while its caller does something else.
class Pending {
 public:
  struct State;
  Pending() = default;  // has happened
  explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Until it has happened; on a GPU what the current stream is asked for from
  // here on waits, and the host only until it has been asked for. Throws
  // LostContact where it could not be done.
  void wait() const;

 private:
  std::shared_ptr<State> state_;
};

struct CommunicatorPlace {
  std::string name;  // of the group, unique among those of a store
  int64_t rank = 0;
  int64_t size = 1;
  at::Device device = at::kCPU;
  CommunicationKind backend = CommunicationKind::kAuto;
  double timeout = 60;  // seconds an operation may take
};

// All ranks of a group call the same functions in the same order, each with
// tensors of the same sizes and types. Operations are done one after the other
// by a thread of their own, on a GPU on a stream of their own. Gloo takes a
// GPU's tensors through the host. The process ignores SIGPIPE: Gloo writes to
// connections that others have closed.
//
// Sums are computed in the order of the ranks: their bits depend on the number
// of ranks and the numbers alone, and are the same on all ranks.
class Communicator {
 public:
  // Waits for all ranks of the group. Throws Error.
  Communicator(const RankStore& store, const CommunicatorPlace& place);

  // Lets go of it, without waiting for others.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int64_t rank() const;
  int64_t size() const;
  at::Device device() const;

  // Each tensor becomes the sum of that of all ranks, in place. All of one type
  // on one device; they are left alone until then.
  Pending sum(std::vector<at::Tensor> tensors);

  // The first from_counts[0] numbers of `from` go to rank 0, the next
  // from_counts[1] to rank 1 and so on; `to` receives to_counts[r] numbers of
  // rank r. Both contiguous, of one type.
  Pending exchange(const at::Tensor& to, const at::Tensor& from,
                   std::vector<int64_t> to_counts,
                   std::vector<int64_t> from_counts);

  // Of one rank, to all others, in place.
  Pending broadcast(std::vector<at::Tensor> tensors, int64_t from = 0);

  // Of each rank r its parts[r] to all others, in place; all contiguous, of one
  // type on one device.
  Pending share(std::vector<std::vector<at::Tensor>> parts);

  // The same of all ranks, one after the other: [size, ...]. Waits.
  at::Tensor gathered(const at::Tensor& x);
  std::vector<std::string> gathered(const std::string& text);

  // Until all ranks have come here.
  void barrier();

  // Seconds that callers have waited for something pending so far.
  double waited() const;

  // Seconds that somebody has waited by now, a caller or the device, whom
  // callers of NCCL leave the waiting to; 0: nobody does.
  double waiting() const;

  // Of operations from here on.
  void set_timeout(double seconds);

  // Memory that it keeps for sums and what is shared, however much there is.
  static int64_t kept_bytes(at::DeviceType device);

  // What it keeps by now. Nothing may be pending.
  int64_t scratch_bytes() const;

  // Bytes that this rank has sent to others so far, as the algorithms count
  // them: without the network's own, and without words with the store.
  int64_t sent_bytes() const;

  // How many operations were begun, for whoever asks whether it goes on.
  int64_t begun() const;

  // Ends it on all ranks in order. Nothing may be pending.
  void shut_down();

 private:
  struct Worker;
  Pending submit(std::function<void(Worker&)> work);

  std::shared_ptr<Worker> worker_;
};

}  // namespace reformer
