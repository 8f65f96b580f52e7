// Working memory, counted by the allocator: linear in length, never
// [length, length].
#include "reformer/device/memory_meter.h"

#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include "reformer/ops/full_attention.h"
#include "reformer/ops/local_attention.h"
#include "reformer/ops/lsh_attention.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

using Attention =
    std::function<at::Tensor(const at::Tensor& qk, const at::Tensor& v)>;

at::Tensor lsh(const at::Tensor& qk, const at::Tensor& v) {
  LshConfig config;
  config.rounds = 4;
  return lsh_attention(qk, v, config, HashKey{});
}

int64_t bytes_of(const at::Tensor& x) {
  return static_cast<int64_t>(x.nbytes());
}

// The most in use in forward and backward beyond inputs, outputs, gradients.
int64_t extra_bytes(const Attention& attention, at::IntArrayRef sizes) {
  const auto qk = normal(sizes, 1).set_requires_grad(true);
  const auto v = normal(sizes, 2).set_requires_grad(true);
  const auto d_output = normal(sizes, 3);
  MemoryMeter meter;
  const auto output = attention(qk, v);
  output.backward(d_output);
  return meter.peak_bytes() - bytes_of(output) - bytes_of(qk.grad()) -
         bytes_of(v.grad());
}

int64_t vector_bytes(at::IntArrayRef sizes) {
  return sizes[0] * sizes[1] * sizes[2] * sizes[3] * 4;
}

TEST(MemoryMeter, CountsTensorsAndForgetsTheReleased) {
  MemoryMeter meter;
  at::Tensor outlives;
  {
    const auto one = at::empty({1000}, at::kFloat);
    EXPECT_EQ(meter.in_use_bytes(), 4000);
    outlives = at::empty({500}, at::kDouble);
    EXPECT_EQ(meter.in_use_bytes(), 8000);
  }
  EXPECT_EQ(meter.in_use_bytes(), 4000);
  EXPECT_EQ(meter.peak_bytes(), 8000);
  meter.reset();
  EXPECT_EQ(meter.peak_bytes(), 0);
  outlives.reset();
  EXPECT_EQ(meter.in_use_bytes(), -4000);
}

TEST(MemoryMeter, CountsMemoryThatIsNoTensors) {
  const MemoryMeter meter;
  auto* const allocator = c10::GetCPUAllocator();
  void* const block = allocator->raw_allocate(5000);
  EXPECT_EQ(meter.in_use_bytes(), 5000);
  allocator->raw_deallocate(block);
  EXPECT_EQ(meter.in_use_bytes(), 0);
  EXPECT_EQ(meter.peak_bytes(), 5000);
  allocator->raw_deallocate(allocator->raw_allocate(0));
  EXPECT_EQ(meter.in_use_bytes(), 0);
}

TEST(MemoryMeter, CountsOnlyWhileItLives) {
  at::Tensor outlives;
  {
    MemoryMeter meter;
    outlives = at::empty({1000}, at::kFloat);
  }
  const auto uncounted = at::empty({1000}, at::kFloat);
  MemoryMeter meter;
  outlives.reset();
  EXPECT_EQ(meter.in_use_bytes(), -4000);
}

TEST(WorkingMemory, OfLshAttentionIsAboutThatOfItsQueries) {
  const std::vector<int64_t> sizes{1, 8, 8192, 64};
  EXPECT_LE(double(extra_bytes(lsh, sizes)), 1.2 * double(vector_bytes(sizes)));
}

TEST(WorkingMemory, OfEveryAttentionIsLinearInLength) {
  const auto local = [](const at::Tensor& qk, const at::Tensor& v) {
    return local_attention(qk, v, LocalConfig{});
  };
  for (const Attention& attention : {Attention(lsh), Attention(local)}) {
    const auto once = extra_bytes(attention, {1, 2, 16384, 64});
    const auto twice = extra_bytes(attention, {1, 2, 32768, 64});
    EXPECT_GT(once, 0);
    EXPECT_LE(double(twice), 2.1 * double(once));
  }
}

// [length, length] would be 256 MiB, the queries are 1 MiB.
TEST(WorkingMemory, OfExactAttentionIsNotQuadratic) {
  const std::vector<int64_t> sizes{1, 1, 8192, 32};
  const auto mask = make_mask(Padding::kRight, 1, 8192);
  for (const bool causal : {false, true}) {
    for (const auto& own_mask : {at::Tensor(), mask}) {
      const auto shared = [&](const at::Tensor& qk, const at::Tensor& v) {
        return full_shared_qk_attention(qk, v, causal, own_mask);
      };
      const auto separate = [&](const at::Tensor& qk, const at::Tensor& v) {
        return full_attention(qk, qk, v, causal, own_mask);
      };
      EXPECT_LE(extra_bytes(shared, sizes), 6 * vector_bytes(sizes));
      EXPECT_LE(extra_bytes(separate, sizes), 6 * vector_bytes(sizes));
    }
  }
}

}  // namespace
}  // namespace reformer
