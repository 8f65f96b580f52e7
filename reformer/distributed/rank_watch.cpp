#include "reformer/distributed/rank_watch.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>

#include "reformer/base/clock.h"
#include "reformer/base/errors.h"

namespace reformer {
namespace {

constexpr const char* kFault = "fault";
constexpr const char* kHeard = "heard";  // by how many ranks
constexpr double kMostInterval = 1;      // seconds
constexpr int kBeatsOfTimeout = 40;
// Of the timeout: a rank whose signs of life stop is lost, one that the others
// wait for hangs; the rest is for the word to get around.
constexpr double kSilence = 0.4;
constexpr double kPatience = 0.75;
// Signs of life that a rank may miss when contact was lost anyway.
constexpr int kMissedBeats = 5;
constexpr std::chrono::milliseconds kPoll{20};

std::string rank_name(int64_t rank) { return "rank " + std::to_string(rank); }

std::string seconds_of(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f s", seconds);
  return text;
}

std::string key_of(int64_t rank) { return "beat/" + std::to_string(rank); }

std::string packed(const RankFault& fault) {
  return std::to_string(fault.rank) + (fault.told ? " told " : " found ") +
         std::to_string(fault.status) + ' ' + fault.sentence;
}

RankFault unpacked(const std::string& text) {
  const size_t told = text.find(' ') + 1;
  const size_t status = text.find(' ', told) + 1;
  const size_t sentence = text.find(' ', status) + 1;
  return {std::stoll(text), text.substr(sentence),
          text.substr(told, status - told) == "told ",
          std::stoi(text.substr(status))};
}

}  // namespace

// As it is written: "beats begun waiting busy".
struct RankWatch::Beat {
  long long beats = 0;
  long long begun = 0;
  double waiting = 0;
  int busy = 0;

  static Beat of(const std::string& text) {
    Beat beat;
    std::sscanf(text.c_str(), "%lld %lld %lf %d", &beat.beats, &beat.begun,
                &beat.waiting, &beat.busy);
    return beat;
  }
};

RankWatch::RankWatch(const RankStore& store, const Ranks& ranks, double timeout,
                     Progress progress, OnFault on_fault)
    : store_(store.again()),
      ranks_(ranks),
      timeout_(timeout),
      interval_(std::min(kMostInterval, timeout / kBeatsOfTimeout)),
      progress_(std::move(progress)),
      on_fault_(std::move(on_fault)),
      answered_(steady_seconds()),
      next_changed_(steady_seconds()),
      beating_([this] { beat(); }),
      watching_([this] { watch(); }) {}

RankWatch::~RankWatch() { end(); }

void RankWatch::end() {
  silent_ = true;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  if (beating_.joinable()) beating_.join();
  if (watching_.joinable()) watching_.join();
}

bool RankWatch::sleep(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [&] { return ended_; });
  return !ended_;
}

// Once, whichever thread finds it.
void RankWatch::say(const RankFault& fault) {
  if (!silent_.exchange(true)) on_fault_(*this, fault);
}

RankFault RankWatch::declare(const RankFault& fault) {
  return heard(store_.set_once(kFault, packed(fault)));
}

std::optional<RankFault> RankWatch::known_fault() {
  const auto fault = store_.find(kFault);
  if (!fault) return {};
  return heard(*fault);
}

RankFault RankWatch::heard(const std::string& fault) {
  try {
    if (!heard_.exchange(true)) store_.add(kHeard, 1);
  } catch (const std::exception&) {  // nobody is left to be told
  }
  return unpacked(fault);
}

void RankWatch::let_others_hear() {
  const bool serves = ranks_.first() && !ranks_.agent_store;
  // Where words do not come back this one would not, either.
  if (!serves || steady_seconds() - answered_ > kPatience * timeout_) return;
  // One that hangs may hear, one that was lost does not.
  const double end = steady_seconds() + kMissedBeats * interval_;
  try {
    while (store_.add(kHeard, 0) < ranks_.size && steady_seconds() < end) {
      std::this_thread::sleep_for(kPoll);
    }
  } catch (const std::exception&) {  // then nothing is served
  }
}

std::string RankWatch::own_beat() const {
  const auto progress = progress_();
  char text[128];
  std::snprintf(
      text, sizeof(text), "%lld %lld %.3f %d", static_cast<long long>(beats_),
      static_cast<long long>(progress.begun), progress.waiting, busy_ ? 1 : 0);
  return text;
}

void RankWatch::beat() {
  do {
    try {
      ++beats_;
      store_.set(key_of(ranks_.rank), own_beat());
      look_for_fault();
      look_at_next(steady_seconds());
      look_at_waiting();
      answered_ = steady_seconds();
    } catch (const std::exception&) {
      // The one who serves the store has gone, and with it all words.
      if (ranks_.agent_store) {
        say({ranks_.rank, "torchrun's store at " + ranks_.host + ":" +
                              std::to_string(ranks_.port) + " was lost"});
      } else {
        say({0, "rank 0, which serves the store, was lost"});
      }
      return;
    }
  } while (sleep(interval_));
}

void RankWatch::look_for_fault() {
  if (const auto fault = known_fault()) say(*fault);
}

void RankWatch::look_at_next(double now) {
  const int64_t next = (ranks_.rank + 1) % ranks_.size;
  const auto beat = store_.find(key_of(next)).value_or("");
  if (beat != next_beat_) {
    next_beat_ = beat;
    next_changed_ = now;
  } else if (next != ranks_.rank && now - next_changed_ > kSilence * timeout_) {
    say(declare({next, rank_name(next) +
                           " was lost: it has given no sign of "
                           "life for " +
                           seconds_of(now - next_changed_)}));
  }
}

// Of two that have begun as much the one that does not wait holds the other up:
// its GPU may be stuck before what its host has asked for.
bool RankWatch::is_behind(const Beat& beat, const Beat& other) {
  if (beat.begun != other.begun) return beat.begun < other.begun;
  return beat.waiting == 0 && other.waiting > 0;
}

void RankWatch::look_at_waiting() {
  const double waiting = progress_().waiting;
  if (waiting < kPatience * timeout_) return;
  // The one who is behind; of several the first.
  std::optional<Beat> behind;
  int64_t culprit = 0;
  for (int64_t rank = 0; rank < ranks_.size; ++rank) {
    const auto text = store_.find(key_of(rank));
    if (!text) return;  // it has not begun, or will be missed
    const Beat beat = Beat::of(*text);
    if (beat.busy != 0) return;
    if (!behind || is_behind(beat, *behind)) {
      behind = beat;
      culprit = rank;
    }
  }
  const std::string waited =
      rank_name(ranks_.rank) + " has waited for it for " + seconds_of(waiting);
  say(declare({culprit, behind->waiting > 0
                            ? "the ranks wait for each other: " + waited
                            : rank_name(culprit) + " hangs: " + waited}));
}

// Words may not come back at all, where the way to the store is cut.
void RankWatch::watch() {
  while (sleep(interval_)) {
    const double silence = steady_seconds() - answered_;
    if (silence > kPatience * timeout_) {
      say({ranks_.agent_store ? ranks_.rank : 0,
           "the store of the ranks at " + ranks_.host + ":" +
               std::to_string(ranks_.port) + " has not answered for " +
               seconds_of(silence)});
    }
  }
}

RankFault RankWatch::give_up(const std::string& sentence, int status) {
  silent_ = true;
  const RankFault own{ranks_.rank, sentence, /*told=*/true, status};
  try {
    return declare(own);
  } catch (const std::exception&) {  // nobody is left to be told
    return own;
  }
}

RankFault RankWatch::lost_contact(const std::string& sentence) {
  const auto fault = why_lost(sentence);
  silent_ = true;
  return fault;
}

// Who has been killed does not beat. The others found it out at the same time,
// and one of their sentences is everybody's.
RankFault RankWatch::why_lost(const std::string& sentence) {
  try {
    std::map<int64_t, std::string> beats;
    for (int64_t rank = 0; rank < ranks_.size; ++rank) {
      beats[rank] = store_.find(key_of(rank)).value_or("");
    }
    for (int i = 0; i < kMissedBeats; ++i) {
      if (const auto fault = known_fault()) return *fault;
      std::this_thread::sleep_for(std::chrono::duration<double>(interval_));
    }
    for (const auto& [rank, beat] : beats) {
      if (rank != ranks_.rank &&
          store_.find(key_of(rank)).value_or("") == beat) {
        return declare({rank, rank_name(rank) +
                                  " was lost: it was killed, or "
                                  "its machine cannot be reached"});
      }
    }
    return declare({ranks_.rank, rank_name(ranks_.rank) + ": " + sentence});
  } catch (const std::exception&) {
    return {0, ranks_.agent_store ? "torchrun's store was lost"
                                  : "rank 0, which serves the store, was lost"};
  }
}

}  // namespace reformer
