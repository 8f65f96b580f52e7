// Rebuilding inputs changes nothing but rounding (paper Sec. 3).
#include "reformer/model/reversible_stack.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "reformer/device/memory_meter.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

struct StackRun {
  Streams x;
  Streams y;
};

ReversibleStack& stack_of(LanguageModel& model) {
  return dynamic_cast<ReversibleStack&>(model.stack());
}

StackRun run_forward(LanguageModel& model, at::IntArrayRef sizes) {
  const auto type = model.parameters()[0].value.scalar_type();
  const Streams x{normal_numbers(sizes, 1, type),
                  normal_numbers(sizes, 2, type)};
  return {x, stack_of(model).forward({x.x1.clone(), x.x2.clone()},
                                     training_pass())};
}

TEST(ReversibleStack, RebuildsTheInputOf24Layers) {
  auto config = small_config();
  config.model.layers = 24;
  config.train.length = 256;
  LanguageModel model(config);
  shake(model, 0.05);
  const auto [x, y] = run_forward(model, {2, 256, config.model.d_model});
  EXPECT_GT(relative_error(y.x1, x.x1), 1);  // the layers do something
  stack_of(model).backward(y, {at::zeros_like(y.x1), at::zeros_like(y.x2)});
  EXPECT_LE(relative_error(y.x1, x.x1), 1e-4);
  EXPECT_LE(relative_error(y.x2, x.x2), 1e-4);
}

// An output that is a little off stands for a rebuilt input that is: hashed
// again it falls into other buckets here and there, and the gradients jump.
TEST(ReversibleStack, BackwardUsesTheBucketsOfForward) {
  auto config = small_config_of("lsh");
  config.lsh.local_window = 0;
  config.train.length = 256;
  LanguageModel model(config, at::kDouble);
  const auto gradient_with = [&](double noise) {
    const auto run = run_forward(model, {2, 256, config.model.d_model});
    const auto sizes = run.y.x1.sizes();
    run.y.x1.add_(normal_numbers(sizes, 3, at::kDouble), noise);
    run.y.x2.add_(normal_numbers(sizes, 4, at::kDouble), noise);
    return stack_of(model).backward(run.y,
                                    {normal_numbers(sizes, 5, at::kDouble),
                                     normal_numbers(sizes, 6, at::kDouble)});
  };
  const auto exact = gradient_with(0);
  const auto near = gradient_with(1e-3);
  EXPECT_GT(relative_error(near.x1, exact.x1), 0);
  EXPECT_LE(relative_error(near.x1, exact.x1), 1e-2);
  EXPECT_LE(relative_error(near.x2, exact.x2), 1e-2);
}

TEST(ReversibleStack, KeepsTwoBytesForEachTokenHeadAndRound) {
  const auto config = small_config_of("lsh");
  LanguageModel model(config);
  const MemoryMeter meter;
  const auto [x, y] = run_forward(model, {2, 66, config.model.d_model});
  const auto streams = static_cast<int64_t>(4 * x.x1.nbytes());
  EXPECT_EQ(meter.in_use_bytes() - streams,
            2 * /*batch=*/2 * 66 * config.model.heads * config.lsh.rounds *
                config.model.layers);
}

TEST(ReversibleStack, ForgetsTheBucketsAfterBackward) {
  LanguageModel model(small_config_of("lsh"));
  const auto tokens = random_tokens(small_config(), 1);
  const auto train = [&] {
    model.train(tokens, all_of(tokens), training_pass(), 1);
  };
  train();  // gradients stay
  const MemoryMeter meter;
  train();
  EXPECT_EQ(meter.in_use_bytes(), 0);
}

TEST(ReversibleStack, IsTheFunctionOfStoredActivationsToTheBit) {
  auto config = small_config();
  LanguageModel model(config);
  config.model.block = "stored";
  LanguageModel stored(config);
  const auto [x, y] = run_forward(model, {2, 66, 24});
  const auto other = stored.stack().forward(x, training_pass());
  EXPECT_TRUE(at::equal(other.x1, y.x1));
  EXPECT_TRUE(at::equal(other.x2, y.x2));
}

TEST(ReversibleStack, EvaluatesAsItsForwardPassDoes) {
  LanguageModel model(small_config());
  const auto [x, y] = run_forward(model, {2, 66, 24});
  const auto again = model.stack().evaluate({x.x1.clone(), x.x2.clone()},
                                            training_pass(), nullptr);
  EXPECT_TRUE(at::equal(again.x1, y.x1));
  EXPECT_TRUE(at::equal(again.x2, y.x2));
}

}  // namespace
}  // namespace reformer
