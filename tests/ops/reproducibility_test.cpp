// The same bits for any number of threads, and for a row alone or in a batch.
#include <gtest/gtest.h>

#include "reformer/base/parallel.h"
#include "reformer/ops/full_attention.h"
#include "reformer/ops/local_attention.h"
#include "reformer/ops/lsh_attention.h"
#include "tests/support/cases.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

constexpr HashKey kKey{/*seed=*/9, /*step=*/8, /*layer=*/7};

using MaskedAttention =
    std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k,
                             const at::Tensor& v, const at::Tensor& mask)>;

struct NamedAttention {
  const char* name;
  MaskedAttention attention;
  bool separate;
};

// Of every way through the kernels: several rounds whose segments share keys,
// one round, and intervals longer than a segment.
const std::vector<NamedAttention>& attentions() {
  static const std::vector<NamedAttention> all{
      {"lsh",
       [](const auto& q, const auto&, const auto& v, const auto& mask) {
         LshConfig config;
         config.rounds = 2;
         config.chunk_length = 64;
         config.local_window = 30;
         return lsh_attention(q, v, config, kKey, mask);
       },
       false},
      {"lsh, not causal, chunk",
       [](const auto& q, const auto&, const auto& v, const auto& mask) {
         LshConfig config;
         config.rounds = 3;
         config.causal = false;
         config.window = Window::kChunk;
         return lsh_attention(q, v, config, kKey, mask);
       },
       false},
      {"local",
       [](const auto& q, const auto&, const auto& v, const auto& mask) {
         return local_attention(q, v, LocalConfig{}, mask);
       },
       false},
      {"full_shared_qk",
       [](const auto& q, const auto&, const auto& v, const auto& mask) {
         return full_shared_qk_attention(q, v, /*causal=*/true, mask);
       },
       false},
      {"full",
       [](const auto& q, const auto& k, const auto& v, const auto& mask) {
         return full_attention(q, k, v, /*causal=*/true, mask);
       },
       true},
  };
  return all;
}

// More than three segments of 1024 queries, and not a multiple of anything.
AttentionInputs long_inputs(bool separate) {
  const std::vector<int64_t> sizes{2, 2, 3309, 24};
  auto inputs = make_inputs(Queries::kClustered, Padding::kScattered, sizes, 1);
  if (separate)
    inputs.k = make_inputs(Queries::kRandom, Padding::kScattered, sizes, 2).q;
  return inputs;
}

AttentionAnswer answer_of(const MaskedAttention& attention,
                          const AttentionInputs& inputs) {
  return answer(
      [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        return AttentionResult{attention(q, k, v, inputs.mask), {}};
      },
      inputs);
}

TEST(Reproducibility, ThreadsDoNotChangeABit) {
  const int before = threads();
  for_each_instruction_set([&](const std::string& set) {
    for (const auto& [name, attention, separate] : attentions()) {
      const auto inputs = long_inputs(separate);
      set_threads(1);
      const auto expected = answer_of(attention, inputs);
      for (const int count : {2, 3}) {
        set_threads(count);
        EXPECT_TRUE(same_bits(answer_of(attention, inputs), expected))
            << name << ", " << count << " threads, " << set;
      }
    }
  });
  set_threads(before);
}

TEST(Reproducibility, ARowAloneIsTheRowInABatch) {
  for_each_instruction_set([&](const std::string& set) {
    for (const auto& [name, attention, separate] : attentions()) {
      const auto inputs = long_inputs(separate);
      const auto batch = answer_of(attention, inputs);
      for (int64_t row = 0; row < inputs.q.size(0); ++row) {
        const auto own = [&](const at::Tensor& x) {
          return x.defined() ? x.narrow(0, row, 1) : x;
        };
        const auto alone =
            answer_of(attention, {own(inputs.q), own(inputs.k), own(inputs.v),
                                  own(inputs.d_output), own(inputs.mask)});
        EXPECT_TRUE(same_bits(alone, {own(batch.output),
                                      {},
                                      own(batch.d_q),
                                      own(batch.d_k),
                                      own(batch.d_v)}))
            << name << ", row " << row << ", " << set;
      }
    }
  });
}

}  // namespace
}  // namespace reformer
