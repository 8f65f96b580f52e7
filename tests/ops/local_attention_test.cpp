#include "reformer/ops/local_attention.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/support/cases.h"
#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

struct LocalCase {
  int64_t length;
  LocalConfig config;
  Padding padding;
};

std::vector<LocalCase> local_cases() {
  const std::vector<int64_t> lengths{1, 2, 33, 128, 333};
  const std::vector<int64_t> chunk_lengths{1, 16, 100};
  std::vector<LocalCase> cases;
  for (const auto& row : pairwise_cover({5, 3, 2, 2, 4})) {
    cases.push_back(
        {lengths[row[0]],
         {chunk_lengths[row[1]],
          row[2] == 1 ? Window::kTrailing : Window::kChunk, row[3] == 1},
         static_cast<Padding>(row[4])});
  }
  return cases;
}

TEST(LocalAttention, IsTheSoftmaxOverNearbyPositions) {
  uint64_t seed = 0;
  for (const auto& [length, config, padding] : local_cases()) {
    SCOPED_TRACE("length " + std::to_string(length) + ", chunk_length " +
                 std::to_string(config.chunk_length) + ", " +
                 name_of(config.window) + (config.causal ? ", causal" : "") +
                 ", padding " + name_of(padding));
    auto inputs = make_inputs(Queries::kSomeZero, padding, {2, 2, length, 40},
                              seed += 100);
    inputs.successor_heads = 1;
    // One bucket in one round: the natural order.
    LshConfig lsh;
    lsh.chunk_length = config.chunk_length;
    lsh.window = config.window;
    lsh.causal = config.causal;
    const auto attended = reference::union_of(reference::attended_sets(
        at::zeros({2, 2, 1, length}, at::kInt), lsh, inputs.mask));
    const auto local = [&, &config = config](const at::Tensor& qk,
                                             const at::Tensor&,
                                             const at::Tensor& v) {
      return AttentionResult{
          local_attention(qk, v, config, inputs.mask, inputs.successor_heads),
          {}};
    };
    const Tolerance tolerance(inputs, attended);
    for_each_instruction_set([&](const std::string& name) {
      tolerance.expect_as_good_as_plain(answer(local, inputs), name);
    });
    tolerance.expect_exact(answer(local, inputs.to(at::kDouble)), "float64");
  }
}

TEST(LocalAttention, OfSeparateKeysSeesItselfItsChunkAndTheOneBefore) {
  constexpr int64_t kLength = 37;
  constexpr int64_t kChunk = 8;
  const auto drawn = [](uint64_t seed) {
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    return at::randn({2, 3, kLength, 16}, generator, at::kDouble) * 2;
  };
  const auto q = drawn(1);
  const auto k = drawn(2);
  const auto v = drawn(3);
  const auto at = at::arange(kLength);
  const auto chunk = at.div(kChunk, "floor");
  auto seen = (chunk.unsqueeze(1) - chunk <= 1) & (at.unsqueeze(1) >= at);
  const auto expected = [&] {
    auto scores = at::matmul(q, k.transpose(2, 3)) / 4;
    scores = scores.masked_fill(~seen, -1e30);
    return at::matmul(scores.softmax(3), v);
  };
  const auto error = [&](const at::Tensor& mask, int64_t real) {
    const auto output =
        local_attention_separate_qk(q, k, v, {kChunk, Window::kChunk}, mask);
    return (output - expected()).narrow(2, 0, real).abs().max().item<double>();
  };
  EXPECT_LT(error({}, kLength), 1e-9);
  // Padding at the end is seen by nobody, and moves nothing before it.
  const auto mask = (at < 30).expand({2, kLength});
  EXPECT_LT(error(mask, 30), 1e-9);
}

}  // namespace
}  // namespace reformer
