// A GPU on the host, for tests: runs a kernel that g++ compiled, one block
// after the other, its threads as fibers of one thread of the host.
//
// A thread runs until it waits for others: for its block (__syncthreads) or for
// its warp (shuffles, votes, matrices). Which warp goes on is the schedule's
// choice. So a kernel that leaves out a barrier reads what is not there yet, or
// what another warp has already replaced: shared memory is poison at the start
// of a block, and the target of an asynchronous copy is poison until the thread
// that started the copy has waited for it.
//
// What a GPU would not do either is a std::runtime_error from `launch`, that of
// the thread that did it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace reformer::emulation {

inline constexpr int kLanes = 32;
inline constexpr int kMaxThreads = 1024;
// Bytes of shared memory that a block has without asking, and may have: those
// of an H100, or fewer while a LessSharedMemory lives.
inline constexpr int kSharedMemoryUnasked = 48 * 1024;
inline int most_shared_memory = 227 * 1024;
class LessSharedMemory {
 public:
  explicit LessSharedMemory(int bytes) : before_(most_shared_memory) {
    most_shared_memory = bytes;
  }
  ~LessSharedMemory() { most_shared_memory = before_; }
  LessSharedMemory(const LessSharedMemory&) = delete;
  LessSharedMemory& operator=(const LessSharedMemory&) = delete;

 private:
  int before_;
};

enum class Schedule {
  kFirstWarpFirst,  // a warp as far as it comes; then the first that can go on
  kLastWarpFirst,   // likewise, the last
  kRandom,          // warps take turns now and then, when their lanes meet
};
// Blocks follow the same order; a random one is the same after every call.
void use_schedule(Schedule schedule);

struct Launch {
  dim3 grid;
  int threads;  // of a block, whole warps
  std::size_t shared_bytes;
  bool early;  // may start before the launch before it has ended
};
void launch(const Launch& config, const std::function<void()>& kernel);

// For the stand-ins of instructions (reformer/kernels/cuda/instructions.cuh):
// all are called by the threads of a kernel.

[[noreturn]] void fail(const std::string& what);

unsigned char* shared_memory();
// Where `bytes` bytes of shared memory lie, from `address` on, which must be a
// multiple of them.
unsigned char* shared_at(uint32_t address, int bytes);

void wait_for_block();

// All lanes of a warp call it with the same `together`, which runs once, with
// what they brought, when the last has come.
using Together = void (*)(void* const (&operands)[kLanes]);
void wait_for_warp(Together together, void* operand);

// Operand::together reads and writes all lanes' operands.
template <class Operand>
void meet(Operand& own) {
  wait_for_warp(
      [](void* const(&operands)[kLanes]) {
        Operand* lanes[kLanes];
        std::transform(operands, operands + kLanes, lanes,
                       [](void* x) { return static_cast<Operand*>(x); });
        Operand::together(lanes);
      },
      &own);
}

void start_copy(uint32_t to, const void* from, int bytes, bool real);
void commit_copies();
void wait_for_copies(int pending);

// An early launch must wait for the last before it touches what that wrote.
void wait_for_last_launch();
void require_last_launch_ended();

}  // namespace reformer::emulation
