// Ranks on a GPU: NCCL, which takes one a GPU, and Gloo through the host.
#include "reformer/distributed/communicator.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <mutex>

#include "reformer/device/device.h"
#include "reformer/tasks/task.h"
#include "reformer/train/learner.h"
#include "tests/distributed/rank_threads.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);

Config config_of(const char* backend) {
  Config config;
  config.distributed.backend = backend;
  config.task.name = "duplication";
  config.task.alphabet = 15;
  config.model.vocabulary = 16;
  config.model.layers = 2;
  config.model.d_model = 64;
  config.model.d_ff = 96;
  config.model.heads = 4;
  config.model.dropout = 0.1;
  config.lsh.rounds = 2;
  config.lsh.chunk_length = 16;
  config.train.length = 128;
  config.train.batch = 4;
  config.train.optimizer = "adafactor";
  config.train.learning_rate = 0.01;
  config.train.clip = 1;
  config.train.cuda_graph = "off";
  return config;
}

at::Tensor on_gpu(double value, int64_t count) {
  return at::full({count}, value,
                  at::TensorOptions().dtype(at::kFloat).device(kGpu));
}

void expect_operations(World& world) {
  const int64_t ranks = world.ranks().size;
  const double rank = double(world.ranks().rank);
  const auto sum = on_gpu(rank + 1, 1001);
  world.sums().sum({sum}).wait();
  EXPECT_EQ(sum.sum().item<double>(), 1001 * double(ranks * (ranks + 1)) / 2);
  const auto first = on_gpu(rank + 7, 3);
  world.sums().broadcast({first}).wait();
  EXPECT_EQ(first[1].item<double>(), 7);
  const auto all = world.sums().gathered(on_gpu(rank, 2));
  EXPECT_EQ(all.sum().item<double>(), double(ranks * (ranks - 1)));
  const auto to = on_gpu(-1, ranks);
  world.sums()
      .exchange(to, on_gpu(rank, ranks), std::vector<int64_t>(size_t(ranks), 1),
                std::vector<int64_t>(size_t(ranks), 1))
      .wait();
  EXPECT_EQ(to[ranks - 1].item<double>(), double(ranks - 1));
}

TEST(CudaCommunicator, OneRankUnderNccl) {
  with_ranks(1, config_of("nccl"), expect_operations, kGpu);
}

TEST(CudaCommunicator, SeveralRanksUnderGloo) {
  for (const int64_t ranks : {1, 2, 4}) {
    with_ranks(ranks, config_of("gloo"), expect_operations, kGpu);
  }
}

std::vector<at::Tensor> trained(const Config& config, World* world) {
  const auto task = make_task(config);
  Learner learner(config, {kGpu, at::kFloat}, world);
  for (int64_t step = 1; step <= 10; ++step) {
    EXPECT_TRUE(
        learner.gradients({task->training_batch(step)}, step).read().finite());
    learner.apply(step);
  }
  std::vector<at::Tensor> parameters;
  for (const auto& parameter : learner.model().parameters()) {
    parameters.push_back(parameter.value.detach().cpu());
  }
  return parameters;
}

TEST(CudaDataParallel, OneRankUnderNcclTakesTheStepsOfNone) {
  const auto config = config_of("nccl");
  const auto alone = trained(config, nullptr);
  with_ranks(
      1, config,
      [&](World& world) {
        const auto found = trained(config, &world);
        for (size_t i = 0; i < alone.size(); ++i) {
          EXPECT_TRUE(at::equal(found[i], alone[i]));
        }
      },
      kGpu);
}

TEST(CudaDataParallel, SeveralRanksFollowTheTrajectoryOfOne) {
  for (const bool sharded : {false, true}) {
    auto config = config_of("gloo");
    const auto alone = trained(config, nullptr);
    config.train.shard_optimizer = sharded;
    for (const int64_t ranks : {2, 4}) {
      with_ranks(
          ranks, config,
          [&](World& world) {
            const auto found = trained(config, &world);
            for (size_t i = 0; i < alone.size(); ++i) {
              const auto off = (found[i] - alone[i]).abs().max();
              EXPECT_LE(off.item<double>(), 2e-3);
            }
          },
          kGpu);
    }
  }
}

TEST(CudaSequenceParallel, RanksFollowTheTrajectoryOfOne) {
  auto config = config_of("gloo");
  const auto alone = trained(config, nullptr);
  config.train.sequence_parallel = 2;
  with_ranks(
      2, config,
      [&](World& world) {
        const auto found = trained(config, &world);
        for (size_t i = 0; i < alone.size(); ++i) {
          const auto off = (found[i] - alone[i]).abs().max();
          EXPECT_LE(off.item<double>(), 2e-3);
        }
      },
      kGpu);
}

}  // namespace
}  // namespace reformer
