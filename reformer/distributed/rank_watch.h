// Who notices when a rank is lost, hangs or has given up, and ends the others.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "reformer/distributed/rank_store.h"
#include "reformer/distributed/ranks.h"

namespace reformer {

// Why a run of several ranks cannot go on.
struct RankFault {
  int64_t rank = 0;      // whose fault it is
  std::string sentence;  // empty: none, that rank was asked to end
  bool told = false;     // by that rank itself, to its user
  int status = 1;        // that processes end with
};

// How far a rank's main thread is, as it says itself.
struct RankProgress {
  int64_t begun = 0;   // operations with others, so far
  double waiting = 0;  // seconds for others, by now; 0: it does not wait
};

// A thread gives a sign of life each beat, and looks whether the next rank
// does; the first word of a fault, whoever says it, is everybody's. Where this
// rank's main thread waits for the others too long, the one who is behind is at
// fault, unless it is busy with what takes its time.
class RankWatch {
 public:
  using Progress = std::function<RankProgress()>;
  // Called once, from a thread of the watch: all ranks are to end.
  using OnFault = std::function<void(RankWatch&, const RankFault&)>;

  // Faults are found within `timeout` seconds.
  RankWatch(const RankStore& store, const Ranks& ranks, double timeout,
            Progress progress, OnFault on_fault);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  // From here until the next call with false nothing is expected of this rank.
  void set_busy(bool busy) { busy_ = busy; }

  // This rank gives up, and tells its user why. Returns the fault that all
  // ranks know: its own, unless another's came before. Then this watch says
  // nothing more.
  RankFault give_up(const std::string& sentence, int status = 1);

  // Contact with others was lost: waits for the word why.
  RankFault lost_contact(const std::string& sentence);

  // Before this process ends because of it: whoever serves the store stays
  // until all others have heard, a few signs of life at the most. They could
  // not know otherwise why it has gone.
  void let_others_hear();

  // This rank ends in order, as all others do.
  void end();

 private:
  struct Beat;
  static bool is_behind(const Beat& beat, const Beat& other);
  void beat();   // a thread: words with the store
  void watch();  // a thread: time
  bool sleep(double seconds);
  void say(const RankFault& fault);
  RankFault declare(const RankFault& fault);
  std::optional<RankFault> known_fault();
  RankFault heard(const std::string& fault);
  RankFault why_lost(const std::string& sentence);
  void look_at_next(double now);
  void look_at_waiting();
  void look_for_fault();
  std::string own_beat() const;

  const RankStore store_;
  const Ranks ranks_;
  const double timeout_;
  const double interval_;
  const Progress progress_;
  const OnFault on_fault_;

  std::atomic<bool> busy_ = false;
  std::atomic<bool> silent_ = false;  // nothing more is to be said
  std::atomic<bool> heard_ = false;   // of a fault
  std::atomic<double> answered_ = 0;  // when the store did
  int64_t beats_ = 0;
  std::string next_beat_;  // of the next rank, as last seen
  double next_changed_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread beating_;
  std::thread watching_;
};

}  // namespace reformer
