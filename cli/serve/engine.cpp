#include "cli/serve/engine.h"

#include <algorithm>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/kernels/key_value_pages.h"

namespace reformer::cli {
namespace {

constexpr const char* kStopped = "the server is being stopped";

void add_seconds(std::atomic<double>& sum, double seconds) {
  sum.store(sum.load() + seconds);  // of one thread
}

int64_t reserved_by(const GenerationRequest& request, int64_t choice) {
  return positions_of(
      std::ssize(request.prompts[static_cast<std::size_t>(choice)]),
      request.max_tokens);
}

}  // namespace

int64_t positions_of(int64_t prompt, int64_t max_tokens) {
  constexpr int64_t kPage = kernels::kPagePositions;
  return (prompt + max_tokens + kPage - 1) / kPage * kPage;
}

Engine::Engine(const LanguageModel* model, const TokenWriting* writing,
               const EngineLimits& limits)
    : model_(model), writing_(writing), limits_(limits) {
  thread_ = std::thread([this] { loop(); });
}

Engine::~Engine() {
  stop();
  thread_.join();
}

void Engine::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& text : reading_) text.generation->cancel();
    if (at_work_ != nullptr) at_work_->cancelled = true;
  }
  wake_.notify_all();
}

std::shared_ptr<Generation> Engine::submit(GenerationRequest request) {
  const int64_t texts = std::ssize(request.prompts);
  const auto generation =
      std::make_shared<Generation>(std::move(request), *writing_);
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw QueueFull(kStopped);
    const int64_t free = std::max<int64_t>(0, limits_.batch - counts_.running);
    if (std::ssize(waiting_) + texts > limits_.queue + free) {
      throw QueueFull("as many texts wait as the queue holds, " +
                      std::to_string(limits_.queue) + ": try again in a while");
    }
    for (int64_t choice = 0; choice < texts; ++choice) {
      waiting_.push_back({generation, choice});
    }
    counts_.waiting = std::ssize(waiting_);
  }
  wake_.notify_all();
  return generation;
}

void Engine::run(const std::function<void()>& work,
                 const std::function<bool()>& left) {
  if (left && left()) throw Interrupted();
  Work mine{&work};
  std::unique_lock lock(mutex_);
  if (stopping_) throw QueueFull(kStopped);
  if (std::ssize(work_) > limits_.queue) {
    throw QueueFull(
        "as much work waits as the queue holds: try again in a "
        "while");
  }
  work_.push_back(&mine);
  wake_.notify_all();
  wait_for(mine, left, lock);
  if (mine.fault) std::rethrow_exception(mine.fault);
}

void Engine::wait_for(Work& work, const std::function<bool()>& left,
                      std::unique_lock<std::mutex>& lock) {
  constexpr std::chrono::milliseconds kPoll{100};
  const auto done = [&] { return work.done; };
  if (!left) return worked_.wait(lock, done);
  while (!worked_.wait_for(lock, kPoll, done)) {
    if (!left()) continue;
    work.cancelled = true;
    if (std::erase(work_, &work) > 0) throw Interrupted();
  }
}

int64_t Engine::running() const {
  return std::ssize(own_.running) + own_.reading + std::ssize(others_.running) +
         others_.reading;
}

void Engine::loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    do_work(lock);
    // One prompt between two steps: those that run already do not wait long.
    const bool admitted = admit_next(lock);
    if (running() == 0) {
      if (admitted || !work_.empty()) continue;
      wake_.wait(lock, [&] {
        return stopping_ || !work_.empty() || !waiting_.empty();
      });
      continue;
    }
    lock.unlock();
    step_all();
    lock.lock();
  }
  for (auto* work : work_) {
    work->fault = std::make_exception_ptr(Error(kStopped));
    work->done = true;
  }
  work_.clear();
  worked_.notify_all();
  for (const auto& text : waiting_) text.generation->fail(kStopped);
  waiting_.clear();
  fail_all(own_, kStopped);
  fail_all(others_, kStopped);
}

void Engine::do_work(std::unique_lock<std::mutex>& lock) {
  if (work_.empty()) return;
  Work& next = *work_.front();
  work_.pop_front();
  at_work_ = &next;
  lock.unlock();
  try {
    const std::function<void()> turn = [this] { take_turn(); };
    const Interruptible interruptible(&next.cancelled, &turn);
    since_step_ = {};
    (*next.work)();
  } catch (...) {
    next.fault = std::current_exception();
  }
  lock.lock();
  at_work_ = nullptr;
  next.done = true;
  worked_.notify_all();
}

// Null: texts of yet another number of rounds have to end first.
Engine::Batch* Engine::batch_for(int64_t rounds) {
  const bool own = rounds == 0 || rounds == model_->config().lsh.rounds;
  Batch& batch = own ? own_ : others_;
  if (!own && batch.texts && batch.rounds != rounds) {
    if (!batch.running.empty() || batch.reading > 0) return nullptr;
    batch.texts.reset();
  }
  if (!batch.texts || (batch.broken && batch.reading == 0)) {
    batch.rounds = own ? 0 : rounds;
    renew(batch);
  }
  return &batch;
}

void Engine::renew(Batch& batch) {
  batch.texts = std::make_unique<ContinuousBatch>(
      *model_, limits_.batch, batch.rounds, writing_->count(), packed_);
  batch.broken = false;
}

// The first of the queue, where there is room for it. Returns whether the queue
// has become shorter.
bool Engine::admit_next(std::unique_lock<std::mutex>& lock) {
  if (stopping_ || waiting_.empty() || running() >= limits_.batch) return false;
  const Waiting next = waiting_.front();
  const auto& request = next.generation->request();
  if (next.generation->cancelled()) {
    waiting_.pop_front();
    counts_.waiting = std::ssize(waiting_);
    ++counts_.cancelled;
    return true;
  }
  if (running() > 0 &&
      reserved_ + reserved_by(request, next.choice) > limits_.positions) {
    return false;
  }
  try {
    Batch* batch = batch_for(request.rounds);
    if (batch == nullptr) return false;
    waiting_.pop_front();
    counts_.waiting = std::ssize(waiting_);
    reading_.push_back(next);
    lock.unlock();
    begin(next, *batch);
  } catch (const Interrupted&) {
    ++counts_.cancelled;
    next.generation->fail(kStopped);
  } catch (const std::exception& error) {
    next.generation->fail(error.what());
  }
  if (lock.owns_lock()) {  // its batch could not be made
    waiting_.pop_front();
    counts_.waiting = std::ssize(waiting_);
  } else {
    lock.lock();
    reading_.pop_back();
  }
  counts_.running = running();
  return true;
}

class Engine::Place {
 public:
  Place(Engine& engine, Batch& batch, int64_t positions)
      : engine_(engine), batch_(batch), positions_(positions) {
    ++batch.reading;
    engine.reserved_ += positions;
    engine.counts_.running = engine.running();
  }
  ~Place() {
    --batch_.reading;
    if (!kept_) engine_.reserved_ -= positions_;
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  // The text runs: `end` gives its positions back.
  int64_t keep() {
    kept_ = true;
    return positions_;
  }

 private:
  Engine& engine_;
  Batch& batch_;
  int64_t positions_;
  bool kept_ = false;
};

void Engine::begin(const Waiting& text, Batch& batch) {
  const auto& request = text.generation->request();
  const auto choice = static_cast<std::size_t>(text.choice);
  JoiningText joining;
  joining.prompt = request.prompts[choice];
  joining.sampler = request.sampler;
  joining.row = request.rows[choice];
  joining.alternatives = request.alternatives;
  PrefillWatch watch;
  watch.stop = &text.generation->cancelled();
  watch.turn = [this] { take_turn(); };
  Place place(*this, batch, reserved_by(request, text.choice));
  const double steps_before = counts_.step_seconds;
  const double read_before = counts_.reading_seconds;
  const Stopwatch reading;
  since_step_ = {};
  auto read = batch.texts->read(joining, watch);
  add_seconds(counts_.reading_seconds,
              reading.seconds() - (counts_.step_seconds - steps_before) -
                  (counts_.reading_seconds - read_before));
  counts_.prompt_tokens += std::ssize(joining.prompt);
  if (batch.broken) {
    require(batch.reading == 1, "a step failed while this prompt was read");
    renew(batch);
  }
  auto first = batch.texts->join(std::move(read));
  batch.running.emplace(first.text,
                        Running{text.generation, text.choice, place.keep()});
  deliver(batch, std::move(first));
}

// Between parts of a prompt's pass, or of other work.
void Engine::take_turn() {
  if (since_step_.seconds() < limits_.turn_seconds) return;
  const int64_t before = counts_.steps;
  step_all();
  counts_.turns += counts_.steps - before;
  if (next_is_short()) {
    const Stopwatch begun;
    std::unique_lock lock(mutex_);
    admit_next(lock);
    begun_seconds_ = begun.seconds();
    since_begin_ = {};
  }
  since_step_ = {};
}

int64_t Engine::prompt_of(const Waiting& text) {
  const auto& prompts = text.generation->request().prompts;
  return std::ssize(prompts[static_cast<std::size_t>(text.choice)]);
}

// Whether the first of the queue may begin while the prompt of another is read,
// or other work is done: one at a time, and for no more than half of the time.
bool Engine::next_is_short() {
  const std::lock_guard lock(mutex_);
  if (reading_.size() > 1 || waiting_.empty() || stopping_) return false;
  const int64_t next = prompt_of(waiting_.front());
  const bool shorter =
      reading_.empty() || 2 * next <= prompt_of(reading_.front());
  return next <= kShortPrompt && shorter &&
         since_begin_.seconds() >= begun_seconds_;
}

void Engine::deliver(Batch& batch, DrawnToken token) {
  const auto at = batch.running.find(token.text);
  const auto& running = at->second;
  ++counts_.tokens;
  if (!running.generation->add(running.choice, token.token, token.probability,
                               std::move(token.alternatives))) {
    return;
  }
  ++counts_.texts;
  end(batch, token.text);
}

void Engine::end(Batch& batch, int64_t number) {
  batch.texts->leave(number);
  const auto at = batch.running.find(number);
  reserved_ -= at->second.reserved;
  batch.running.erase(at);
  counts_.running = running();
}

// By a client that is gone, or by a stop, of which the others have to hear.
void Engine::drop_cancelled(Batch& batch) {
  std::vector<int64_t> gone;
  for (const auto& [number, running] : batch.running) {
    if (running.generation->cancelled()) gone.push_back(number);
  }
  for (const int64_t number : gone) {
    ++counts_.cancelled;
    batch.running.at(number).generation->fail(kStopped);
    end(batch, number);
  }
}

// A step that fails leaves caches of which nobody knows what they hold.
void Engine::fail_all(Batch& batch, const std::string& sentence) {
  for (const auto& [number, running] : batch.running) {
    running.generation->fail(sentence);
    reserved_ -= running.reserved;
  }
  batch.running.clear();
  batch.broken = batch.reading > 0;  // whoever reads for it needs it still
  if (!batch.broken) batch.texts.reset();
  counts_.running = running();
}

void Engine::step_all() {
  for (auto* batch : {&own_, &others_}) {
    drop_cancelled(*batch);
    step(*batch);
  }
}

void Engine::step(Batch& batch) {
  if (batch.running.empty()) return;
  try {
    const Stopwatch watch;
    auto drawn = batch.texts->next();
    for (auto& token : drawn) deliver(batch, std::move(token));
    add_seconds(counts_.step_seconds, watch.seconds());
    ++counts_.steps;
  } catch (const std::exception& error) {
    fail_all(batch, error.what());
  }
}

}  // namespace reformer::cli
