// The public attentions are the inner ones: every option arrives.
#include "reformer/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "reformer/error.h"
#include "reformer/ops/full_attention.h"
#include "reformer/ops/local_attention.h"
#include "reformer/ops/lsh_attention.h"

namespace {

using reformer::AttentionWindow;
using reformer::LocalOptions;
using reformer::LshOptions;
using reformer::Window;

struct PublicAttention : testing::Test {
  const at::Tensor qk = 3 * at::randn({2, 3, 77, 8});
  const at::Tensor v = at::randn({2, 3, 77, 8});
  // The second row ends after 50 positions.
  const at::Tensor mask =
      at::arange(77).lt(at::arange(77, 49, -27).view({2, 1}));
};

TEST_F(PublicAttention, EveryOptionOfLshArrives) {
  const LshOptions small{.rounds = 2, .chunk_length = 6, .n_buckets = 8};
  std::vector<LshOptions> all(9, small);
  all[1].rounds = 1;
  all[2].chunk_length = 5;
  all[3].n_buckets = 4;
  all[4].local_window = 3;
  all[5].window = AttentionWindow::kChunk;
  all[6].causal = false;
  all[7].successor_heads = 2;
  all[8].seed = 5;
  const auto plain = reformer::lsh_attention(qk, v, small, mask);
  for (const auto& o : all) {
    const reformer::LshConfig config{o.rounds,
                                     o.chunk_length,
                                     o.n_buckets,
                                     o.local_window,
                                     o.window == AttentionWindow::kChunk
                                         ? Window::kChunk
                                         : Window::kTrailing,
                                     o.causal};
    const auto expected = reformer::lsh_attention(
        qk, v, config, reformer::HashKey{.seed = o.seed}, mask,
        o.successor_heads);
    const auto found = reformer::lsh_attention(qk, v, o, mask);
    EXPECT_TRUE(at::equal(found, expected));
    EXPECT_EQ(at::equal(found, plain), &o == &all[0]) << &o - &all[0];
  }
}

TEST_F(PublicAttention, EveryOptionOfLocalArrives) {
  const LocalOptions small{.chunk_length = 6};
  std::vector<LocalOptions> all(5, small);
  all[1].chunk_length = 5;
  all[2].window = AttentionWindow::kTrailing;
  all[3].causal = false;
  all[4].successor_heads = 2;
  const auto plain = reformer::local_attention(qk, v, small, mask);
  for (const auto& o : all) {
    const auto expected = reformer::local_attention(
        qk, v,
        reformer::LocalConfig{o.chunk_length,
                              o.window == AttentionWindow::kChunk
                                  ? Window::kChunk
                                  : Window::kTrailing,
                              o.causal},
        mask, o.successor_heads);
    const auto found = reformer::local_attention(qk, v, o, mask);
    EXPECT_TRUE(at::equal(found, expected));
    EXPECT_EQ(at::equal(found, plain), &o == &all[0]) << &o - &all[0];
  }
}

TEST_F(PublicAttention, FullAttentionSeesThePastAloneWhereCausal) {
  for (const bool causal : {true, false}) {
    EXPECT_TRUE(
        at::equal(reformer::full_attention(qk, v, v, {.causal = causal}, mask),
                  reformer::full_attention(qk, v, v, causal, mask)));
    EXPECT_TRUE(
        at::equal(reformer::full_shared_qk_attention(
                      qk, v, {.causal = causal, .successor_heads = 1}, mask),
                  reformer::full_shared_qk_attention(qk, v, causal, mask, 1)));
  }
}

TEST_F(PublicAttention, BadOptionsThrow) {
  EXPECT_THROW(reformer::lsh_attention(qk, v, {.rounds = 0}), reformer::Error);
  EXPECT_THROW(reformer::lsh_attention(qk, v, {.n_buckets = 3}),
               reformer::Error);
  EXPECT_THROW(
      reformer::local_attention(qk, v, LocalOptions{.chunk_length = 0}),
      reformer::Error);
}

}  // namespace
