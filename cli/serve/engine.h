// The one thread that computes: texts of all requests in shared steps, and
// other work between them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cli/bench/timing.h"
#include "cli/serve/generation.h"
#include "reformer/base/errors.h"
#include "reformer/generate/continuous_batch.h"
#include "reformer/model/language_model.h"

namespace reformer::cli {

struct EngineLimits {
  int64_t batch = 1;      // texts that go on together
  int64_t queue = 0;      // texts, or other work, that wait
  int64_t positions = 1;  // that all running texts may come to together
  // Of reading a prompt, before those that run already have a step.
  double turn_seconds = 0.025;
};

// Prompts up to so many tokens are read while one of twice their length and
// more is: in its turns.
inline constexpr int64_t kShortPrompt = 4096;

// What has happened so far; read while it goes on.
struct EngineCounts {
  std::atomic<int64_t> prompt_tokens = 0;
  std::atomic<int64_t> tokens = 0;
  std::atomic<int64_t> steps = 0;
  std::atomic<int64_t> turns = 0;      // steps while a prompt was read
  std::atomic<int64_t> texts = 0;      // that ended as they should
  std::atomic<int64_t> cancelled = 0;  // texts whose client went away
  std::atomic<int64_t> running = 0;
  std::atomic<int64_t> waiting = 0;
  std::atomic<double> reading_seconds = 0;
  std::atomic<double> step_seconds = 0;
};

// Whether nothing more fits into the queue.
class QueueFull : public Error {
 public:
  using Error::Error;
};

class Engine {
 public:
  // model: null where only `run` is used. Both must outlive it.
  Engine(const LanguageModel* model, const TokenWriting* writing,
         const EngineLimits& limits);
  // As stop, and waits for it.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Throws QueueFull. Texts begin in the order in which they came, as soon as
  // there is room; where several ask for other rounds than the model's, those
  // of one number at a time. While a prompt is read the others go on, more
  // slowly, and one that is short need not wait for the end of a long one.
  std::shared_ptr<Generation> submit(GenerationRequest request);

  // Work that needs the model, between two steps; waits for it, and throws what
  // it throws. Throws QueueFull. At its interruption points
  // (base/interruption.h) texts go on as while a prompt is read, and it ends,
  // with Interrupted, after a stop and when `left` has become true, which is
  // asked now and then, on this thread: whoever wanted it has gone away.
  void run(const std::function<void()>& work,
           const std::function<bool()>& left = {});

  // Gives up what it is at, and all that waits, with a sentence; does not wait
  // for that.
  void stop();

  const EngineLimits& limits() const { return limits_; }
  const EngineCounts& counts() const { return counts_; }

  // Once it is true, work ends.
  const std::atomic<bool>& stopping() const { return stopping_; }

 private:
  struct Waiting {
    std::shared_ptr<Generation> generation;
    int64_t choice;
  };
  struct Running {
    std::shared_ptr<Generation> generation;
    int64_t choice;
    int64_t reserved;  // positions
  };
  struct Work {
    const std::function<void()>* work;
    std::atomic<bool> cancelled = false;
    std::exception_ptr fault = nullptr;
    bool done = false;
  };
  // Texts of one number of rounds.
  struct Batch {
    std::unique_ptr<ContinuousBatch> texts;
    std::map<int64_t, Running> running;  // by ContinuousBatch's number
    int64_t rounds = 0;
    int64_t reading = 0;  // prompts that are read for it
    bool broken = false;  // texts hold what nobody knows
  };
  // What a text takes of the limits, from the reading of its prompt on.
  class Place;

  void loop();
  void do_work(std::unique_lock<std::mutex>& lock);
  void wait_for(Work& work, const std::function<bool()>& left,
                std::unique_lock<std::mutex>& lock);
  bool admit_next(std::unique_lock<std::mutex>& lock);
  Batch* batch_for(int64_t rounds);
  void renew(Batch& batch);
  void begin(const Waiting& text, Batch& batch);
  void take_turn();
  bool next_is_short();
  static int64_t prompt_of(const Waiting& text);
  void step_all();
  void step(Batch& batch);
  void drop_cancelled(Batch& batch);
  void deliver(Batch& batch, DrawnToken token);
  void end(Batch& batch, int64_t number);
  void fail_all(Batch& batch, const std::string& sentence);
  int64_t running() const;

  const LanguageModel* model_;
  const TokenWriting* writing_;
  EngineLimits limits_;
  EngineCounts counts_;
  Batch own_;     // the config's rounds
  Batch others_;  // another number of them, one at a time
  int64_t reserved_ = 0;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable worked_;
  std::deque<Waiting> waiting_;  // under the mutex
  std::deque<Work*> work_;       // likewise
  Work* at_work_ = nullptr;      // likewise
  // Likewise: whose prompts are read, the one in the other's turns.
  std::vector<Waiting> reading_;
  std::shared_ptr<PackedMatrices> packed_ = std::make_shared<PackedMatrices>();
  Stopwatch since_step_;
  Stopwatch since_begin_;     // of the last short prompt in another's turn
  double begun_seconds_ = 0;  // which took so long
  std::thread thread_;        // last: it uses all of the above
};

// Positions that a text takes at most: the start token, its prompt and all that
// is drawn but the last, in whole pages of the caches.
int64_t positions_of(int64_t prompt, int64_t max_tokens);

}  // namespace reformer::cli
