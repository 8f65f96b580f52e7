// Interval attention on the GPU, judged in float64 on the same buckets.
#include <gtest/gtest.h>

#include "tests/cuda/interval_attention_device.h"
#include "tests/cuda/interval_attention_tolerance.h"

namespace reformer::kernels {
namespace {

class IntervalAttentionCuda : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      GTEST_SKIP() << "no CUDA device";
    }
  }
};

template <class T>
void expect_good(const Case& c) {
  SCOPED_TRACE(c.name());
  const Problem p = make_problem<T>(c);
  const DeviceProblem<T> device(p);
  const Result got = device.run();
  expect_as_good<T>(got, p);
  expect_same_bits(got, device.run());
}

TEST_F(IntervalAttentionCuda, IsAsGoodAsPlainBf16AtAnyLength) {
  for (const int64_t length : {1, 2, 15, 33, 64, 127, 129, 1000, 4103}) {
    for (const int64_t rounds : {1, 2, 4, 8}) {
      Case c;
      c.length = length;
      c.rounds = rounds;
      c.n_buckets = std::max<int64_t>(2, length / 64 * 2);
      expect_good<__nv_bfloat16>(c);
    }
  }
}

TEST_F(IntervalAttentionCuda, IsAsGoodAsPlainBf16ForAnyNumberOfRounds) {
  for (const int64_t rounds : {3, 5, 6, 7, 9, 12}) {
    Case c;
    c.length = 300;
    c.rounds = rounds;
    c.n_buckets = 4;
    expect_good<__nv_bfloat16>(c);
  }
}

TEST_F(IntervalAttentionCuda, IsAsGoodAsPlainBf16ForAnyWidth) {
  for (const int64_t d : {8, 16, 24, 32, 40, 64, 72, 96, 104, 128}) {
    Case c;
    c.length = 777;
    c.d = d;
    c.rounds = 3;
    expect_good<__nv_bfloat16>(c);
  }
}

TEST_F(IntervalAttentionCuda, IsAsGoodAsPlainBf16UnderEveryRule) {
  for (const auto window : {Window::kTrailing, Window::kChunk}) {
    for (const bool causal : {true, false}) {
      for (const bool padded : {true, false}) {
        for (const int64_t local : {0, 128, 20}) {
          Case c;
          c.batch = 2;
          c.length = 1000;
          c.rounds = 2;
          c.local = local;
          c.n_buckets = 8;  // buckets longer than their windows
          c.window = window;
          c.causal = causal;
          c.padded = padded;
          c.d = local == 20 ? 128 : 64;
          expect_good<__nv_bfloat16>(c);
        }
      }
    }
  }
}

// Lone tokens, ends and padding among them: few queries see anybody.
TEST_F(IntervalAttentionCuda, OffersTheValuesOfSuccessors) {
  for (const bool causal : {true, false}) {
    for (const bool padded : {true, false}) {
      for (const int64_t length : {1, 9, 63, 1000, 3000}) {
        Case c;
        c.batch = 2;
        c.length = length;
        c.rounds = 2;
        c.n_buckets = length > 100 ? 256 : 4;
        c.local = causal ? 0 : 3;
        c.causal = causal;
        c.padded = padded;
        c.d = padded == causal ? 128 : 64;
        c.successor_heads = padded ? 1 : 2;
        expect_good<__nv_bfloat16>(c);
        expect_good<float>(c);
      }
    }
  }
}

TEST_F(IntervalAttentionCuda, IsAsGoodAsPlainBf16OnAnyVectors) {
  for (const auto vectors : {Vectors::kClustered, Vectors::kIdentical,
                             Vectors::kWithZeros, Vectors::kLarge}) {
    for (const bool causal : {true, false}) {
      Case c;
      c.rounds = 4;
      c.vectors = vectors;
      c.causal = causal;
      expect_good<__nv_bfloat16>(c);
    }
  }
}

// The natural order and a window of everything.
TEST_F(IntervalAttentionCuda, IsFullAttentionToo) {
  for (const bool causal : {true, false}) {
    for (const bool shared : {true, false}) {
      for (const bool padded : {true, false}) {
        for (const int64_t d : {40, 128}) {
          Case c;
          c.length = 515;
          c.d = d;
          c.rounds = 0;
          c.local = 1 << 20;
          c.causal = causal;
          c.shared = shared;
          c.padded = padded;
          expect_good<__nv_bfloat16>(c);
        }
      }
    }
  }
}

TEST_F(IntervalAttentionCuda, TakesSeparateKeysInSeveralRounds) {
  Case c;
  c.shared = false;
  c.rounds = 3;
  c.local = 40;
  expect_good<__nv_bfloat16>(c);
  c.causal = false;
  c.d = 128;
  expect_good<__nv_bfloat16>(c);
}

TEST_F(IntervalAttentionCuda, IsAsGoodAsPlainFp32) {
  for (const int64_t length : {1, 33, 1000}) {
    for (const bool causal : {true, false}) {
      for (const bool shared : {true, false}) {
        Case c;
        c.length = length;
        c.rounds = 3;
        c.local = 20;
        c.d = 72;
        c.causal = causal;
        c.shared = shared;
        c.padded = length == 1000;
        expect_good<float>(c);
      }
    }
  }
  for (const auto vectors :
       {Vectors::kClustered, Vectors::kIdentical, Vectors::kWithZeros}) {
    Case c;
    c.vectors = vectors;
    c.d = 128;
    expect_good<float>(c);
  }
}

// Padded rows may hold anything.
TEST_F(IntervalAttentionCuda, NeverReadsPaddedRows) {
  for (const bool causal : {true, false}) {
    Case c;
    c.padded = true;
    c.causal = causal;
    c.successor_heads = 1;
    Problem p = make_problem<__nv_bfloat16>(c);
    const Result wanted = DeviceProblem<__nv_bfloat16>(p).run();
    fill_padded_rows(p, std::numeric_limits<float>::quiet_NaN());
    expect_same_bits(DeviceProblem<__nv_bfloat16>(p).run(), wanted);
  }
}

TEST_F(IntervalAttentionCuda, ComputesARowAloneAsInABatch) {
  Case c;
  c.batch = 3;
  c.length = 1000;
  const Problem batch = make_problem<__nv_bfloat16>(c);
  const Result all = DeviceProblem<__nv_bfloat16>(batch).run();
  Problem one = batch;
  one.sizes.batch = 1;
  const int64_t row = c.heads * c.length;
  const auto second = [](auto& x, int64_t n) {
    x = std::remove_reference_t<decltype(x)>(x.begin() + n, x.begin() + 2 * n);
  };
  for (auto* x : {&one.q, &one.v, &one.d_output}) second(*x, row * c.d);
  second(one.order, row * c.rounds);
  second(one.place, row * c.rounds);
  second(one.interval, row * c.rounds * 2);
  Result part = all;
  for (auto* x : {&part.output, &part.d_q, &part.d_v}) second(*x, row * c.d);
  second(part.lse, row);
  expect_same_bits(DeviceProblem<__nv_bfloat16>(one).run(), part);
}

TEST_F(IntervalAttentionCuda, WorkspaceDoesNotGrowWithRounds) {
  Case c;
  c.rounds = 8;
  const DeviceProblem<__nv_bfloat16> device(make_problem<__nv_bfloat16>(c));
  const int64_t qk_bytes = c.numbers() * 2;
  EXPECT_LE(cuda::interval_attention_grad_workspace(device.args), 5 * qk_bytes);
  EXPECT_LE(cuda::interval_attention_workspace(device.args.forward),
            3 * qk_bytes);
}

}  // namespace
}  // namespace reformer::kernels
