// All ranks of a run, and the groups in which they work together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/config/config.h"
#include "reformer/distributed/communicator.h"
#include "reformer/distributed/rank_watch.h"
#include "reformer/distributed/ranks.h"

namespace reformer {

// What all ranks find at the same time, so that one of them may say it for all.
class CommonError : public Error {
 public:
  using Error::Error;
};

// As `require`, of what all ranks judge alike.
template <class... Parts>
void require_of_all(bool condition, const Parts&... parts) {
  try {
    require(condition, parts...);
  } catch (const Error& error) {
    throw CommonError(error.what());
  }
}

// What a rank says of itself, in the order in which ranks are compared.
using RankFacts = std::vector<std::pair<std::string, std::string>>;

// All settings but paths: each machine may have its data in another place.
RankFacts setting_facts(const Config& config);

// train.sequence_parallel ranks that follow one another share their sequences,
// by positions; such groups share a step's examples.
class World {
 public:
  // Waits for all ranks, `timeout` seconds, and connects their hosts. Throws
  // Error, naming the ranks that did not come.
  World(const Ranks& ranks, const RankStore& store, double timeout);

  // Connects their devices. Throws CommonError unless all ranks have the same
  // settings and kind of device, on which it depends how they are connected,
  // and the number of ranks is a multiple of train.sequence_parallel.
  void connect(const Config& config, at::Device device);

  const Ranks& ranks() const { return ranks_; }
  bool first() const { return ranks_.first(); }
  bool alone() const { return ranks_.size == 1; }

  // Between hosts, for words and decisions.
  Communicator& control() { return *control_; }
  // Between devices, once they are connected.
  Communicator& sums() { return *sums_; }
  // The ranks that share this one's sequences; null: none do.
  Communicator* sequence() { return sequence_.get(); }

  // Which of the groups that share a step's examples this rank is in.
  int64_t data_rank() const { return ranks_.rank / sequence_parallel_; }
  int64_t data_size() const { return ranks_.size / sequence_parallel_; }

  // Throws CommonError unless all ranks say the same, naming the first fact
  // that differs and both ranks' words.
  void require_alike(const RankFacts& facts);

  // Whether one of them says yes.
  bool any(bool yes);

  // Rank 0's.
  double first_ones(double number);

  // From here on ranks that are lost, hang or give up are found by all within
  // distributed.timeout seconds. Operations themselves then wait for as long as
  // a busy rank may take.
  void watch(RankWatch::OnFault on_fault);
  RankWatch* watching() { return watch_.get(); }

  // While one exists, the other ranks wait for this one without an end.
  class Busy {
   public:
    explicit Busy(World* world) : world_(world) { set(true); }
    ~Busy() { set(false); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    void set(bool busy) {
      if (world_ != nullptr && world_->watch_) world_->watch_->set_busy(busy);
    }
    World* world_;
  };

  // Seconds that this rank has waited for others so far.
  double waited() const;

  // Bytes that it has sent to them (Communicator::sent_bytes).
  int64_t sent_bytes() const;

  // All ranks end in order, each when all have come here.
  void shut_down();

 private:
  RankProgress progress() const;
  void make(std::unique_ptr<Communicator>& group, CommunicatorPlace place);
  std::vector<Communicator*> groups() const;  // those that there are by now

  Ranks ranks_;
  RankStore store_;
  double timeout_;
  int64_t sequence_parallel_ = 1;
  // They are made while a watch looks on.
  mutable std::mutex groups_mutex_;
  std::unique_ptr<Communicator> control_;
  std::unique_ptr<Communicator> sums_;
  std::unique_ptr<Communicator> sequence_;
  std::unique_ptr<RankWatch> watch_;
};

}  // namespace reformer
