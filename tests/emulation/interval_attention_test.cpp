// The GPU's interval attention on the host, with the tolerance of a GPU
// (tests/cuda/interval_attention_test.cpp), and under every schedule the same.
#include <gtest/gtest.h>

#include "reformer/base/errors.h"
#include "tests/cuda/beyond_99_kb.h"
#include "tests/cuda/interval_attention_device.h"
#include "tests/cuda/interval_attention_tolerance.h"
#include "tests/emulation/emulator.h"

namespace reformer::kernels {
namespace {

using emulation::Schedule;
using Bf16 = __nv_bfloat16;

Result run(const Problem& p, Schedule schedule) {
  emulation::use_schedule(schedule);
  return DeviceProblem<Bf16>(p).run();
}

void expect_good(const Problem& p) {
  SCOPED_TRACE(p.sizes.name());
  const Result got = run(p, Schedule::kFirstWarpFirst);
  expect_as_good<Bf16>(got, p);
  expect_same_bits(got, run(p, Schedule::kLastWarpFirst));
  expect_same_bits(got, run(p, Schedule::kRandom));
}
void expect_good(const Case& c) { expect_good(make_problem<Bf16>(c)); }

// Gives each round intervals that follow no rule but to be monotone: of few
// steps, trailing at any distance, or ahead.
void make_intervals_arbitrary(Problem& p, uint64_t seed) {
  const Case& c = p.sizes;
  const int64_t rounds = c.all_rounds();
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % n);
  };
  for (int64_t h = 0; h < c.batch * c.heads; ++h) {
    for (int64_t r = 0; r < rounds; ++r) {
      int64_t begin = 0;
      int64_t end = 0;
      const int64_t kind = below(3);
      for (int64_t s = 0; s < c.length; ++s) {
        if (kind == 0) {
          if (below(40) == 0) begin += below(100);
          if (below(30) == 0) end += below(120);
        } else {
          begin =
              std::max(begin, kind == 1 ? s - below(300) : s + 150 - below(50));
          end = std::max(end, kind == 1 ? s + below(5) : s + 200 + below(100));
        }
        begin = std::min(begin, c.length);
        end = std::clamp(end, begin, c.length);
        const int64_t i = p.order[(h * rounds + r) * c.length + s];
        int32_t* interval = &p.interval[((h * c.length + i) * rounds + r) * 2];
        interval[0] = static_cast<int32_t>(begin);
        interval[1] = static_cast<int32_t>(end);
      }
    }
  }
}

TEST(EmulatedIntervalAttention, IsAsGoodAsPlainBf16AtAnyLength) {
  for (const int64_t length : {1, 2, 33, 63, 64, 65, 200}) {
    for (const int64_t rounds : {1, 2, 4}) {
      Case c;
      c.heads = 1;
      c.length = length;
      c.rounds = rounds;
      c.n_buckets = std::max<int64_t>(2, length / 64 * 2);
      expect_good(c);
    }
  }
}

// More of them than wait in registers, too, and rows of tables that are aligned
// or not.
TEST(EmulatedIntervalAttention, IsAsGoodAsPlainBf16ForManyRounds) {
  for (const int64_t rounds : {5, 8, 10, 11}) {
    Case c;
    c.heads = 1;
    c.length = 130;
    c.rounds = rounds;
    c.n_buckets = 4;
    c.padded = rounds == 11;
    expect_good(c);
  }
}

TEST(EmulatedIntervalAttention, IsAsGoodAsPlainBf16ForAnyWidth) {
  for (const int64_t d : {8, 40, 64, 72, 96, 128}) {
    Case c;
    c.length = 200;
    c.d = d;
    c.rounds = 3;
    c.n_buckets = 4;
    expect_good(c);
  }
}

// Of GPUs that have 99 KB a block: what the backward pass keeps has no room.
TEST(EmulatedIntervalAttention, IsAsGoodAsPlainBf16OnASmallerGpu) {
  const emulation::LessSharedMemory less(99 * 1024);
  for (const bool padded : {false, true}) {
    Case c;
    c.heads = 1;
    c.length = 200;
    c.d = 128;
    c.rounds = 8;
    c.n_buckets = 4;
    c.padded = padded;
    expect_good(c);
  }
}

// Nor have tables of many rounds, nor wide keys of their own, beside blocks of
// the usual size.
TEST(EmulatedIntervalAttention, TakesManyRoundsAndOwnKeysOnASmallerGpu) {
  const emulation::LessSharedMemory less(99 * 1024);
  for (const Case& c : cases_beyond_99_kb(/*length=*/70)) expect_good(c);
}

TEST(EmulatedIntervalAttention, RefusesRoundsThatHaveNoRoomBeforeAnyWork) {
  const emulation::LessSharedMemory less(99 * 1024);
  Case c;
  c.heads = 1;
  c.length = 8;
  c.rounds = 300;
  c.n_buckets = 2;
  const DeviceProblem<Bf16> device(make_problem<Bf16>(c));
  for (const auto& pass :
       {&DeviceProblem<Bf16>::forward, &DeviceProblem<Bf16>::backward}) {
    try {
      (device.*pass)();
      ADD_FAILURE() << "was not refused";
    } catch (const reformer::Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("300 rounds"), std::string::npos) << message;
      EXPECT_NE(message.find("this GPU has 101376"), std::string::npos)
          << message;
    }
  }
}

TEST(EmulatedIntervalAttention, IsAsGoodAsPlainBf16UnderEveryRule) {
  for (const auto window : {Window::kTrailing, Window::kChunk}) {
    for (const bool causal : {true, false}) {
      for (const bool padded : {true, false}) {
        Case c;
        c.batch = 2;
        c.heads = 1;
        c.length = 500;
        c.rounds = 1;
        c.local = padded ? 20 : 128;
        c.n_buckets = 4;  // buckets longer than their windows
        c.window = window;
        c.causal = causal;
        c.padded = padded;
        c.d = padded == causal ? 96 : 64;
        expect_good(c);
      }
    }
  }
}

// Lone tokens, ends and padding among them: few queries see anybody.
TEST(EmulatedIntervalAttention, OffersTheValuesOfSuccessors) {
  for (const bool causal : {true, false}) {
    for (const bool padded : {true, false}) {
      for (const int64_t length : {1, 9, 63, 200}) {
        Case c;
        c.batch = 2;
        c.length = length;
        c.rounds = 2;
        c.n_buckets = length > 100 ? 64 : 4;
        c.local = causal ? 0 : 3;
        c.causal = causal;
        c.padded = padded;
        c.d = padded == causal ? 96 : 40;
        c.successor_heads = padded ? 1 : 2;
        expect_good(c);
      }
    }
  }
}

TEST(EmulatedIntervalAttention, IsAsGoodAsPlainBf16OnAnyVectors) {
  for (const auto vectors : {Vectors::kClustered, Vectors::kIdentical,
                             Vectors::kWithZeros, Vectors::kLarge}) {
    Case c;
    c.heads = 1;
    c.length = 500;
    c.rounds = 4;
    c.n_buckets = 8;
    c.vectors = vectors;
    c.causal = vectors != Vectors::kWithZeros;
    expect_good(c);
  }
}

// The natural order and a window of everything.
TEST(EmulatedIntervalAttention, IsFullAttentionToo) {
  for (const bool causal : {true, false}) {
    for (const bool shared : {true, false}) {
      for (const int64_t d : {40, 128}) {
        Case c;
        c.batch = 2;
        c.heads = 1;
        c.length = 200;
        c.d = d;
        c.rounds = 0;
        c.local = 1 << 20;
        c.causal = causal;
        c.shared = shared;
        c.padded = d == 40;
        expect_good(c);
      }
    }
  }
}

TEST(EmulatedIntervalAttention, TakesSeparateKeysInSeveralRounds) {
  for (const int64_t d : {64, 96, 128}) {
    Case c;
    c.heads = 1;
    c.length = 200;
    c.shared = false;
    c.rounds = 2;
    c.local = 40;
    c.n_buckets = 4;
    c.causal = d != 128;
    c.d = d;
    expect_good(c);
  }
}

TEST(EmulatedIntervalAttention, TakesAnyMonotoneIntervals) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const int64_t lengths[] = {63, 64, 65, 200, 500};
    const int64_t widths[] = {64, 8, 128, 96};
    Case c;
    c.heads = 1;
    c.length = lengths[seed % 5];
    c.d = widths[seed % 4];
    c.rounds = 1 + seed % 3;
    c.shared = seed % 4 != 3;
    Problem p = make_problem<Bf16>(c, seed);
    make_intervals_arbitrary(p, seed);
    expect_good(p);
  }
}

// Padded rows may hold anything.
TEST(EmulatedIntervalAttention, NeverReadsPaddedRows) {
  Case c;
  c.length = 200;
  c.rounds = 2;
  c.n_buckets = 4;
  c.padded = true;
  c.successor_heads = 1;
  Problem p = make_problem<Bf16>(c);
  const Result wanted = run(p, Schedule::kRandom);
  fill_padded_rows(p, std::numeric_limits<float>::quiet_NaN());
  expect_same_bits(run(p, Schedule::kRandom), wanted);
}

}  // namespace
}  // namespace reformer::kernels
