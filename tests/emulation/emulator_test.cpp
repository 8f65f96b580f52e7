// The emulator finds what it is there to find.
#include "tests/emulation/emulator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "reformer/kernels/cuda/instructions.cuh"

namespace reformer::emulation {
namespace {

namespace gpu = kernels::cuda;

constexpr Schedule kSchedules[] = {Schedule::kFirstWarpFirst,
                                   Schedule::kLastWarpFirst, Schedule::kRandom};
constexpr int kThreads = 128;

// A block of kThreads with a float for each of them.
void run(const std::function<void()>& kernel, bool early = false) {
  launch({dim3(1), kThreads, kThreads * sizeof(float), early}, kernel);
}
float* floats() { return reinterpret_cast<float*>(shared_memory()); }
int mirrored() { return kThreads - 1 - static_cast<int>(threadIdx.x); }

// Each thread writes a number and reads its mirror image's.
bool mirror_works(bool with_barrier) {
  bool works = true;
  run([&] {
    floats()[threadIdx.x] = static_cast<float>(threadIdx.x);
    if (with_barrier) __syncthreads();
    if (floats()[mirrored()] != static_cast<float>(mirrored())) works = false;
  });
  return works;
}

TEST(Emulator, FindsAMissingBarrierUnderEverySchedule) {
  for (const auto schedule : kSchedules) {
    use_schedule(schedule);
    EXPECT_TRUE(mirror_works(/*with_barrier=*/true));
    EXPECT_FALSE(mirror_works(/*with_barrier=*/false));
  }
}

// A second write while others still read the first.
TEST(Emulator, FindsABarrierMissingBeforeAWrite) {
  for (const auto schedule : kSchedules) {
    use_schedule(schedule);
    for (const bool with_barrier : {true, false}) {
      bool works = true;
      run([&] {
        floats()[threadIdx.x] = static_cast<float>(threadIdx.x);
        __syncthreads();
        const float got = floats()[mirrored()];
        if (with_barrier) __syncthreads();
        floats()[threadIdx.x] = -1;
        if (got != static_cast<float>(mirrored())) works = false;
      });
      EXPECT_EQ(works, with_barrier);
    }
  }
}

TEST(Emulator, ShowsACopyOnlyToWhoHasWaited) {
  const std::vector<float> from(kThreads, 5);
  run([&] {
    const auto address = gpu::shared_address(floats() + threadIdx.x);
    gpu::copy_4(address, &from[threadIdx.x], threadIdx.x % 2 == 0);
    gpu::commit_copies();
    EXPECT_TRUE(std::isnan(floats()[threadIdx.x]));
    gpu::wait_for_copies<1>();
    EXPECT_TRUE(std::isnan(floats()[threadIdx.x]));
    gpu::wait_for_copies<0>();
    EXPECT_EQ(floats()[threadIdx.x], threadIdx.x % 2 == 0 ? 5 : 0);
  });
}

void expect_refused(const std::function<void()>& kernel, const char* why,
                    bool early = false) {
  try {
    run(kernel, early);
    ADD_FAILURE() << "not refused: " << why;
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos)
        << error.what();
  }
}

TEST(Emulator, RefusesWhatAGpuWouldNotSurvive) {
  alignas(16) static const float from[8] = {};
  const auto nothing = [] {};
  EXPECT_THROW(launch({dim3(1), 33, 0, false}, nothing), std::runtime_error);
  expect_refused(
      [] {
        if (threadIdx.x != 0) __syncthreads();
      },
      "waits for threads that never come");
  expect_refused(
      [] {
        if (threadIdx.x != 0) __syncwarp();
      },
      "waits for threads that never come");
  expect_refused(
      [] {
        if (threadIdx.x == 7) {
          __syncwarp();
        } else {
          __any_sync(0xffffffffu, true);
        }
      },
      "at another instruction");
  expect_refused([] { gpu::copy_16(0, from, true); }, "before its copies");
  expect_refused([] { gpu::copy_16(kThreads * 4, from, true); }, "no 16 bytes");
  expect_refused([] { gpu::copy_16(8, from, true); }, "no 16 bytes at 8");
  expect_refused([] { gpu::copy_16(0, from + 1, true); }, "no multiple of 16");
  expect_refused(
      [] {
        uint32_t r[4];
        gpu::load_4(r, kThreads * 4);
      },
      "no 16 bytes");
  expect_refused([] { __ldcg(from); }, "the launch before", /*early=*/true);
  run(
      [] {
        gpu::wait_for_last_round();
        __ldcg(from);
      },
      /*early=*/true);
  EXPECT_TRUE(mirror_works(/*with_barrier=*/true));  // none of it lasts
}

void no_kernel(int) {}

TEST(Emulator, GivesMuchSharedMemoryOnlyToWhoAsked) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = kSharedMemoryUnasked + 16;
  EXPECT_EQ(cudaLaunchKernelEx(&config, no_kernel, 0), cudaErrorInvalidValue);
  const auto ask = [](int bytes) {
    return cudaFuncSetAttribute(
        no_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  EXPECT_EQ(ask(most_shared_memory + 1), cudaErrorInvalidValue);
  EXPECT_EQ(ask(kSharedMemoryUnasked + 16), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernelEx(&config, no_kernel, 0), cudaSuccess);
}

TEST(EmulatorDeathTest, EndsAtWhatLiesBeyondMemory) {
  EXPECT_DEATH(run([] { floats()[kThreads] = 1; }), "");
  float* numbers = nullptr;
  ASSERT_EQ(cudaMalloc(&numbers, 16), cudaSuccess);
  EXPECT_DEATH(std::memset(numbers, 0, 20), "");
  cudaFree(numbers);
}

TEST(Emulator, VotesAndExchangesAcrossLanes) {
  run([] {
    const int lane = threadIdx.x % 32;
    EXPECT_EQ(__shfl_xor_sync(0xffffffffu, lane * 0.5, 5), (lane ^ 5) * 0.5);
    EXPECT_EQ(__ballot_sync(0xffffffffu, lane % 4 == 1), 0x22222222u);
    EXPECT_TRUE(__any_sync(0xffffffffu, lane == 9));
    EXPECT_FALSE(__all_sync(0xffffffffu, lane != 9));
  });
}

// 16 x 16 times 16 x 8 through ldmatrix and mma, as fragments.cuh does.
TEST(Emulator, MultipliesMatrices) {
  std::mt19937 random(1);
  float a[16][16];
  float b[16][8];
  uint16_t bits[16 * 16 + 16 * 8];  // whole numbers are exact in bf16
  const auto number = [&](float& x, uint16_t& stored) {
    x = static_cast<float>(static_cast<int>(random() % 17) - 8);
    uint32_t word;
    std::memcpy(&word, &x, 4);
    stored = static_cast<uint16_t>(word >> 16);
  };
  for (int i = 0; i < 256; ++i) number(a[i / 16][i % 16], bits[i]);
  for (int i = 0; i < 128; ++i) number(b[i / 8][i % 8], bits[256 + i]);
  launch({dim3(1), 32, sizeof(bits), false}, [&] {
    const int lane = static_cast<int>(threadIdx.x);
    if (lane == 0) std::memcpy(shared_memory(), bits, sizeof(bits));
    __syncthreads();
    uint32_t left[4];
    uint32_t right[4];
    gpu::load_4(left, lane % 16 * 32 + lane / 16 * 16);
    gpu::load_4_transposed(right, 512 + lane % 16 * 16);
    float c[4];
    gpu::multiply(c, left, right[0], right[1]);
    gpu::multiply_add(c, left, right[0], right[1]);
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2);
      const int column = lane % 4 * 2 + i % 2;
      float wanted = 0;
      for (int k = 0; k < 16; ++k) wanted += 2 * a[row][k] * b[k][column];
      EXPECT_EQ(c[i], wanted);
    }
  });
}

}  // namespace
}  // namespace reformer::emulation
