// What model.h promises of devices.
#include "reformer/model.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tests/io/temporary_folder.h"
#include "tests/public/small_model.h"

namespace {

using public_tests::counting;
using public_tests::small_options;
using reformer::Model;

TEST(CudaModel, TakesTokensOfAnyDeviceAndReturnsTheCpus) {
  Model model(small_options(), "cuda");
  const auto tokens = counting(0, 2, 48);
  const double loss = model.evaluate(tokens);
  EXPECT_EQ(model.evaluate(tokens.to(at::kCUDA)), loss);
  for (int step = 0; step < 40; ++step) model.train_step(tokens);
  EXPECT_LT(model.evaluate(tokens), 0.5 * loss);
  EXPECT_TRUE(model.logits(tokens).is_cpu());
  EXPECT_TRUE(model.generate(tokens.narrow(1, 0, 9).to(at::kCUDA), 5).is_cpu());
}

TEST(CudaModel, IsTheSameModelOnTheCpu) {
  const reformer::TemporaryFolder folder;
  auto options = small_options();
  options.settings = {"lsh.chunk_length=8", "model.dropout=0.1",
                      "train.precision=float32"};
  Model model(options, "cuda");
  const auto tokens = counting(0, 2, 48);
  for (int step = 0; step < 5; ++step) model.train_step(tokens);
  model.save(folder / "run");
  const auto again = Model::load(folder / "run", "cpu");
  EXPECT_NEAR(again.evaluate(tokens), model.evaluate(tokens), 1e-3);
}

}  // namespace
