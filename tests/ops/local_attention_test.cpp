#include "reformer/ops/local_attention.h"

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

}  // namespace
}  // namespace reformer
