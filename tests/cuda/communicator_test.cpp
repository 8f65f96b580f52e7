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

// More than is sent at once, by pieces that end anywhere, while the device and
// the caller go on.
void expect_pending_operations(World& world) {
  const double ranks = double(world.ranks().size);
  constexpr int64_t kCount = (int64_t{5} << 20) + 3;
  std::vector<at::Tensor> tensors;
  std::vector<Pending> pending;
  for (int64_t i = 1; i <= 4; ++i) {
    tensors.push_back(on_gpu(double(i), kCount / i).add_(1));
    pending.push_back(world.sums().sum({tensors.back(), on_gpu(1, 5)}));
  }
  const auto rank = size_t(world.ranks().rank);
  std::vector<std::vector<at::Tensor>> parts;
  for (size_t r = 0; r < size_t(world.ranks().size); ++r) {
    parts.push_back({on_gpu(r == rank ? double(r + 1) : -1, kCount),
                     on_gpu(r == rank ? 0.5 : -1, int64_t(r + 1))});
  }
  pending.push_back(world.sums().share(parts));
  for (const auto& one : pending) one.wait();
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(at::equal(tensors[i],
                          on_gpu(double(i + 2) * ranks, tensors[i].numel())));
  }
  for (size_t r = 0; r < parts.size(); ++r) {
    EXPECT_TRUE(at::equal(parts[r][0], on_gpu(double(r + 1), kCount)));
    EXPECT_TRUE(at::equal(parts[r][1], on_gpu(0.5, int64_t(r + 1))));
  }
}

TEST(CudaCommunicator, OneRankUnderNccl) {
  with_ranks(1, config_of("nccl"), expect_operations, kGpu);
  with_ranks(1, config_of("nccl"), expect_pending_operations, kGpu);
}

TEST(CudaCommunicator, SeveralRanksUnderGloo) {
  for (const int64_t ranks : {1, 2, 4}) {
    with_ranks(ranks, config_of("gloo"), expect_operations, kGpu);
    with_ranks(ranks, config_of("gloo"), expect_pending_operations, kGpu);
  }
}

// Steps that are replayed where the config asks for it.
std::vector<at::Tensor> trained(const Config& config, World* world) {
  const auto task = make_task(config);
  Learner learner(config, {kGpu, at::kFloat}, world);
  for (int64_t step = 1; step <= 10; ++step) {
    EXPECT_TRUE(
        learner.gradients({task->training_batch(step)}, step).read().finite());
    learner.apply(step);
  }
  const bool shares = config.train.sequence_parallel > 1;
  EXPECT_EQ(learner.captured(),
            config.train.cuda_graph == GraphUse::kOn && !shares);
  std::vector<at::Tensor> parameters;
  for (const auto& parameter : learner.model().parameters()) {
    parameters.push_back(parameter.value.detach().cpu());
  }
  return parameters;
}

// Of rank 0.
std::vector<at::Tensor> trained_by_ranks(const Config& config, int64_t ranks) {
  std::vector<at::Tensor> first;
  with_ranks(
      ranks, config,
      [&](World& world) {
        auto found = trained(config, &world);
        if (world.first()) first = std::move(found);
      },
      kGpu);
  return first;
}

void expect_equal(const std::vector<at::Tensor>& a,
                  const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
}

void expect_close(const std::vector<at::Tensor>& a,
                  const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_LE((a[i] - b[i]).abs().max().item<double>(), 2e-3) << i;
  }
}

// No hashes: another rounding may send a vector to another bucket.
Config without_hashes() {
  auto config = config_of("gloo");
  config.model.attention = "local";
  return config;
}

TEST(CudaDataParallel, OneLaunchedRankTakesTheStepsOfNoneAndSumsNothing) {
  for (const char* graph : {"off", "on"}) {
    auto config = config_of("nccl");
    config.train.cuda_graph = graph;
    const auto alone = trained(config, nullptr);
    with_ranks(
        1, config,
        [&](World& world) {
          expect_equal(trained(config, &world), alone);
          EXPECT_EQ(world.sums().begun(), 0);
        },
        kGpu);
  }
}

TEST(CudaDataParallel, SeveralRanksFollowTheTrajectoryOfOne) {
  for (const bool sharded : {false, true}) {
    auto config = without_hashes();
    const auto alone = trained(config, nullptr);
    config.train.shard_optimizer = sharded;
    for (const int64_t ranks : {2, 4}) {
      expect_close(trained_by_ranks(config, ranks), alone);
    }
  }
}

TEST(CudaDataParallel, TwoRanksTwiceGiveTheSameBitsAlsoOfCapturedSteps) {
  auto config = config_of("gloo");
  const auto once = trained_by_ranks(config, 2);
  expect_equal(trained_by_ranks(config, 2), once);
  config.train.cuda_graph = "on";
  expect_equal(trained_by_ranks(config, 2), once);
}

TEST(CudaSequenceParallel, RanksFollowTheTrajectoryOfOne) {
  auto config = without_hashes();
  const auto alone = trained(config, nullptr);
  config.train.sequence_parallel = 2;
  expect_close(trained_by_ranks(config, 2), alone);
}

}  // namespace
}  // namespace reformer
