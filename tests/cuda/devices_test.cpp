// Every operation runs on the device of its tensors, whichever is current.
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/tasks/task.h"
#include "reformer/train/learner.h"
#include "tests/support/duplication_config.h"

namespace reformer {
namespace {

c10::impl::VirtualGuardImpl devices() {
  return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA);
}

TEST(CudaDevices, AGuardMakesItsDeviceCurrentAndPutsTheOldOneBack) {
  const auto last =
      choose_device("cuda:" + std::to_string(devices().deviceCount() - 1));
  const auto before = devices().getDevice();
  {
    const LaunchGuard launch(last);
    EXPECT_EQ(devices().getDevice(), last);
    EXPECT_EQ(launch.stream(), devices().getStream(last).native_handle());
  }
  EXPECT_EQ(devices().getDevice(), before);
}

TEST(CudaDevices, AreChosenByNumberAndRefusedWhereThereIsNone) {
  EXPECT_EQ(choose_device("cuda").index(), 0);
  EXPECT_EQ(choose_device("cuda:0").index(), 0);
  const auto none = "cuda:" + std::to_string(devices().deviceCount());
  EXPECT_THROW(choose_device(none), Error);
  EXPECT_THROW(choose_device("cuda:"), Error);
  EXPECT_THROW(choose_device("cuda:-1"), Error);
}

// Two steps of everything, the last captured; needs two GPUs of one kind.
TEST(CudaDevices, TheSecondTrainsAsTheFirst) {
  if (devices().deviceCount() < 2) GTEST_SKIP() << "there is one GPU only";
  Config config = duplication_config(16, 64, 64, 64);
  config.model.dropout = 0.1;
  config.lsh.rounds = 4;
  config.lsh.chunk_length = 8;
  const auto task = make_task(config);
  const auto trained = [&](const char* name) {
    Learner learner(config, Placement(choose_device(name), at::kBFloat16));
    std::vector<double> losses;
    for (int64_t step = 1; step <= 5; ++step) {
      const auto gradients =
          learner.gradients({task->training_batch(step)}, step);
      learner.apply(step);
      losses.push_back(gradients.read().sums.loss);
    }
    return losses;
  };
  EXPECT_EQ(trained("cuda:0"), trained("cuda:1"));
}

}  // namespace
}  // namespace reformer
