// Runs that change devices by way of their files, and runs that go wrong.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <atomic>

#include "reformer/base/errors.h"
#include "reformer/io/checkpoint.h"
#include "reformer/train/learner.h"
#include "reformer/train/trainer.h"
#include "tests/io/temporary_folder.h"
#include "tests/support/duplication_config.h"
#include "tests/support/latest_checkpoint.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);
constexpr int64_t kSteps = 24;

Config small_config(const std::string& optimizer) {
  Config config = duplication_config(32, 64, 128, 128);
  config.model.attention = "lsh,local";
  config.lsh.chunk_length = 16;
  config.train.steps = kSteps;
  config.train.optimizer = optimizer;
  config.train.learning_rate = optimizer == "adamw" ? 1e-3 : 1e-2;
  config.train.evaluate_batches = 1;
  config.train.precision = "float32";
  return config;
}

TrainResult run(Config config, const std::string& folder, at::Device device,
                int64_t steps, bool resume) {
  config.train.steps = steps;
  const std::atomic<bool> stop = false;
  TrainObserver silent;
  return train(config, *make_task(config), {folder, resume, device}, stop,
               silent);
}

// |a - b| / |b| over all parameters of two runs' newest checkpoints.
double distance(const std::string& a, const std::string& b) {
  const auto one = load_latest_checkpoint(a)->parameters;
  const auto other = load_latest_checkpoint(b)->parameters;
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    const auto x = one[i].value.to(at::kDouble);
    const auto y = other[i].value.to(at::kDouble);
    difference += (x - y).square().sum().item<double>();
    size += y.square().sum().item<double>();
  }
  return std::sqrt(difference / size);
}

// As if the file of the optimizer had been lost.
void forget_optimizer(const Config& config, const std::string& folder) {
  auto checkpoint = *load_latest_checkpoint(folder);
  Learner fresh(config);
  checkpoint.optimizer = fresh.optimizer().state();
  save_checkpoint(folder, checkpoint, /*best=*/false);
}

TEST(CudaResume, ARunGoesOnOnTheOtherDeviceAsIfItHadNeverLeft) {
  for (const std::string optimizer : {"adamw", "adafactor"}) {
    for (const bool to_gpu : {true, false}) {
      const auto first = to_gpu ? at::Device(at::kCPU) : kGpu;
      const auto second = to_gpu ? kGpu : at::Device(at::kCPU);
      const auto config = small_config(optimizer);
      const TemporaryFolder folder;
      const auto whole =
          run(config, folder / "whole", first, kSteps, /*resume=*/false);
      for (const std::string half : {"moved", "forgetful"}) {
        run(config, folder / half, first, kSteps / 2, /*resume=*/false);
      }
      const auto moved =
          run(config, folder / "moved", second, kSteps, /*resume=*/true);
      forget_optimizer(config, folder / "forgetful");
      run(config, folder / "forgetful", second, kSteps, /*resume=*/true);

      EXPECT_EQ(moved.step, kSteps);
      EXPECT_NEAR(moved.evaluation.loss, whole.evaluation.loss,
                  1e-3 * whole.evaluation.loss);
      const double moved_far = distance(folder / "moved", folder / "whole");
      const double forgot = distance(folder / "forgetful", folder / "whole");
      EXPECT_LT(moved_far, 1e-3) << optimizer << (to_gpu ? " to" : " from");
      EXPECT_GT(forgot, 4 * moved_far)
          << optimizer << (to_gpu ? " to" : " from") << ": the state of the "
          << "optimizer makes no difference";
    }
  }
}

TEST(CudaResume, AFileOfOneDeviceHoldsWhatTheOtherComputes) {
  const auto config = small_config("adafactor");
  const TemporaryFolder folder;
  run(config, folder / "here", at::kCPU, 6, /*resume=*/false);
  run(config, folder / "there", kGpu, 6, /*resume=*/false);
  EXPECT_LT(distance(folder / "there", folder / "here"), 1e-3);
  const auto here = load_latest_checkpoint(folder / "here")->optimizer;
  const auto there = load_latest_checkpoint(folder / "there")->optimizer;
  ASSERT_EQ(there.size(), here.size());
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_EQ(there[i].name, here[i].name);
    const auto exact = here[i].value.to(at::kDouble);
    EXPECT_LE(
        (there[i].value.to(at::kDouble) - exact).abs().sum().item<double>(),
        1e-2 * exact.abs().sum().item<double>())
        << here[i].name;
  }
}

// The loss is read while the next step runs; nothing may be made of a step
// whose loss was never looked at.
TEST(CudaResume, ALossThatIsNotFiniteEndsTheRunAndKeepsTheLastCheckpoint) {
  auto config = small_config("adamw");
  const TemporaryFolder folder;
  run(config, folder / "run", kGpu, 4, /*resume=*/false);
  config.train.learning_rate = 1e30;
  config.train.checkpoint_every = 2;
  try {
    run(config, folder / "run", kGpu, 40, /*resume=*/true);
    FAIL() << "the run went on";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("the loss is not finite at step 6"), std::string::npos)
        << said;
    EXPECT_NE(said.find("the checkpoint of step 4"), std::string::npos) << said;
  }
  const auto left = *load_latest_checkpoint(folder / "run");
  EXPECT_EQ(left.step, 4);
  for (const auto& [name, value] : left.parameters) {
    EXPECT_TRUE(value.isfinite().all().item<bool>()) << name;
  }
}

}  // namespace
}  // namespace reformer
