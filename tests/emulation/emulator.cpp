#include "tests/emulation/emulator.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/emulation/guarded_memory.h"

uint3 threadIdx;
uint3 blockIdx;

namespace reformer::emulation {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr unsigned char kPoison = 0xff;

struct Copy {
  uint32_t to;
  const void* from;
  int bytes;
  bool real;
};

enum class State { kReady, kWaitsForWarp, kWaitsForBlock, kDone };

// A fiber begins by setcontext and goes on by _longjmp, which takes 15 ns:
// swapcontext asks for the mask of signals each time and takes 290 ns.
struct Thread {
  ucontext_t beginning;
  jmp_buf here;
  bool begun;
  State state;
  bool last_launch_ended;
  std::vector<Copy> open;
  std::deque<std::vector<Copy>> committed;
};

struct Warp {
  void* operands[kLanes];
  Together together;
  int waiting = 0;
};

Schedule schedule = Schedule::kRandom;
std::mt19937 random_numbers;

Launch config;
const std::function<void()>* kernel;
unsigned char* shared;
std::vector<Thread> threads;
std::vector<Warp> warps;
int waiting_for_block;
int running;
jmp_buf scheduler;
std::string failure;

// Untouched pages cost nothing.
unsigned char* stack_of(int thread) {
  static unsigned char* const stacks = [] {
    void* map = mmap(nullptr, kMaxThreads * kStackBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    return static_cast<unsigned char*>(map);
  }();
  return stacks + thread * kStackBytes;
}

[[noreturn]] void go_on(int thread) {
  running = thread;
  threadIdx.x = static_cast<unsigned>(thread);
  Thread& to = threads[thread];
  if (to.begun) _longjmp(to.here, 1);
  to.begun = true;
  setcontext(&to.beginning);
  std::abort();
}

// To the next lane that can go on, or to the scheduler.
[[noreturn]] void leave() {
  const int warp = running / kLanes * kLanes;
  for (int i = 1; i <= kLanes; ++i) {
    const int lane = warp + (running + i) % kLanes;
    if (threads[lane].state == State::kReady) go_on(lane);
  }
  _longjmp(scheduler, 1);
}

// Both return when the thread goes on.
[[gnu::noinline]] void wait_as(State state) {
  threads[running].state = state;
  if (_setjmp(threads[running].here) == 0) leave();
}
[[gnu::noinline]] void let_the_scheduler_choose() {
  if (_setjmp(threads[running].here) == 0) _longjmp(scheduler, 1);
}

void thread_body() {
  (*kernel)();
  const Thread& own = threads[running];
  if (!own.open.empty() || !own.committed.empty()) {
    fail("ends before its copies have arrived");
  }
  threads[running].state = State::kDone;
  leave();
}

void begin_block() {
  std::memset(shared, kPoison, config.shared_bytes);
  waiting_for_block = 0;
  warps.assign(config.threads / kLanes, Warp{});
  threads.resize(config.threads);
  for (int i = 0; i < config.threads; ++i) {
    Thread& thread = threads[i];
    getcontext(&thread.beginning);
    thread.beginning.uc_stack.ss_sp = stack_of(i);
    thread.beginning.uc_stack.ss_size = kStackBytes;
    thread.beginning.uc_link = nullptr;
    makecontext(&thread.beginning, thread_body, 0);
    thread.begun = false;
    thread.state = State::kReady;
    thread.last_launch_ended = !config.early;
    thread.open.clear();
    thread.committed.clear();
  }
}

// The first thread that can go on of the warp that the schedule prefers, or -1.
int chosen_thread() {
  const int n = static_cast<int>(warps.size());
  const int begin = schedule == Schedule::kRandom
                        ? static_cast<int>(random_numbers() % n)
                        : 0;
  for (int i = 0; i < n; ++i) {
    const int warp =
        schedule == Schedule::kLastWarpFirst ? n - 1 - i : (begin + i) % n;
    for (int lane = warp * kLanes; lane < (warp + 1) * kLanes; ++lane) {
      if (threads[lane].state == State::kReady) return lane;
    }
  }
  return -1;
}

[[gnu::noinline]] void run_until_all_wait(int thread) {
  if (_setjmp(scheduler) == 0) go_on(thread);
}

[[noreturn]] void throw_failure(const std::string& what, int thread) {
  throw std::runtime_error("block " + std::to_string(blockIdx.x) + ", " +
                           std::to_string(blockIdx.y) + ", thread " +
                           std::to_string(thread) + ": " + what);
}

void run_block() {
  begin_block();
  while (true) {
    const int thread = chosen_thread();
    if (thread < 0) break;
    run_until_all_wait(thread);
    if (!failure.empty()) throw_failure(failure, running);
  }
  for (int i = 0; i < config.threads; ++i) {
    if (threads[i].state == State::kDone) continue;
    throw_failure("waits for threads that never come", i);
  }
}

std::vector<unsigned> order_of_blocks() {
  std::vector<unsigned> order(config.grid.x * config.grid.y);
  std::iota(order.begin(), order.end(), 0u);
  if (schedule == Schedule::kLastWarpFirst) {
    std::reverse(order.begin(), order.end());
  } else if (schedule == Schedule::kRandom) {
    std::shuffle(order.begin(), order.end(), random_numbers);
  }
  return order;
}

void arrive(const Copy& copy) {
  unsigned char* to = shared + copy.to;
  if (copy.real) {
    std::memcpy(to, copy.from, copy.bytes);
  } else {
    std::memset(to, 0, copy.bytes);
  }
}

}  // namespace

void use_schedule(Schedule chosen) {
  schedule = chosen;
  random_numbers.seed(1);
}

void launch(const Launch& with, const std::function<void()>& body) {
  if (with.threads % kLanes != 0 || with.threads < 1 ||
      with.threads > kMaxThreads) {
    throw std::runtime_error("a block of " + std::to_string(with.threads) +
                             " threads");
  }
  const GuardedMemory memory(with.shared_bytes, 256);
  config = with;
  kernel = &body;
  shared = memory.data();
  failure.clear();
  for (const unsigned block : order_of_blocks()) {
    blockIdx = {block % config.grid.x, block / config.grid.x, 0};
    run_block();
  }
}

void fail(const std::string& what) {
  failure = what;
  _longjmp(scheduler, 1);
}

unsigned char* shared_memory() { return shared; }

unsigned char* shared_at(uint32_t address, int bytes) {
  if (address % bytes != 0 ||
      address + std::size_t(bytes) > config.shared_bytes) {
    fail("shared memory has no " + std::to_string(bytes) + " bytes at " +
         std::to_string(address));
  }
  return shared + address;
}

void wait_for_block() {
  if (++waiting_for_block < config.threads) {
    return wait_as(State::kWaitsForBlock);
  }
  waiting_for_block = 0;
  for (Thread& thread : threads) thread.state = State::kReady;
  let_the_scheduler_choose();
}

void wait_for_warp(Together together, void* operand) {
  Warp& warp = warps[running / kLanes];
  if (warp.waiting > 0 && warp.together != together) {
    fail("meets lanes of its warp at another instruction");
  }
  warp.together = together;
  warp.operands[running % kLanes] = operand;
  if (++warp.waiting < kLanes) return wait_as(State::kWaitsForWarp);
  warp.waiting = 0;
  together(warp.operands);
  const int first = running / kLanes * kLanes;
  for (int lane = first; lane < first + kLanes; ++lane) {
    threads[lane].state = State::kReady;
  }
  if (schedule == Schedule::kRandom && random_numbers() % 8 == 0) {
    let_the_scheduler_choose();
  }
}

void start_copy(uint32_t to, const void* from, int bytes, bool real) {
  if (reinterpret_cast<uintptr_t>(from) % bytes != 0) {
    fail("copies from no multiple of " + std::to_string(bytes) + " bytes");
  }
  std::memset(shared_at(to, bytes), kPoison, bytes);
  threads[running].open.push_back({to, from, bytes, real});
}

void commit_copies() {
  Thread& own = threads[running];
  own.committed.push_back(std::move(own.open));
  own.open.clear();
}

void wait_for_copies(int pending) {
  auto& committed = threads[running].committed;
  while (static_cast<int>(committed.size()) > pending) {
    for (const Copy& copy : committed.front()) arrive(copy);
    committed.pop_front();
  }
}

void wait_for_last_launch() { threads[running].last_launch_ended = true; }

void require_last_launch_ended() {
  if (!threads[running].last_launch_ended) {
    fail("touches what the launch before may still write");
  }
}

}  // namespace reformer::emulation
