// Ranks that share sequences compute what one does.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <mutex>

#include "reformer/config/config_json.h"
#include "reformer/model/sequence_exchange.h"
#include "reformer/tasks/task.h"
#include "reformer/train/evaluation.h"
#include "reformer/train/learner.h"
#include "tests/distributed/rank_threads.h"

namespace reformer {
namespace {

Config config_of(const std::vector<std::string>& settings) {
  Config config;
  config.task.name = "duplication";
  config.task.alphabet = 15;
  config.model.vocabulary = 16;
  config.model.layers = 2;
  config.model.d_model = 32;
  config.model.d_ff = 48;
  config.model.heads = 4;
  config.model.dropout = 0.1;
  config.lsh.rounds = 2;
  config.lsh.chunk_length = 8;
  config.lsh.n_buckets = 6;
  config.train.length = 48;
  config.train.batch = 2;
  config.train.optimizer = "adam";
  config.train.learning_rate = 0.01;
  config.train.clip = 0.5;
  for (const auto& setting : settings) set_config_value(config, setting);
  check(config);
  return config;
}

TEST(SequenceExchange, ThereAndBackIsWhereItWas) {
  Config config;
  config.model.heads = 5;
  config.train.sequence_parallel = 3;
  with_ranks(3, config, [](World& world) {
    constexpr int64_t kHeads = 5, kWidth = 4, kPositions = 2, kRanks = 3;
    const SequenceExchange exchange(world.sequence(), kHeads);
    const auto whole =
        at::arange(2 * kRanks * kPositions * kHeads * kWidth, at::kDouble)
            .view({2, kRanks * kPositions, kHeads * kWidth});
    const int64_t rank = world.ranks().rank;
    const auto own = whole.narrow(1, rank * kPositions, kPositions);
    const auto by_heads = exchange.by_heads(own.contiguous());
    EXPECT_TRUE(
        at::equal(by_heads, whole.narrow(2, exchange.first_head() * kWidth,
                                         exchange.own_heads() * kWidth)));
    EXPECT_TRUE(at::equal(exchange.by_positions(by_heads), own));
  });
}

struct Outcome {
  std::vector<double> numbers;
  std::vector<at::Tensor> parameters;
};

Outcome trained(const Config& config, World* world) {
  const auto task = make_task(config);
  Learner learner(config, Placement(at::kDouble), world);
  Outcome outcome;
  for (int64_t step = 1; step <= 4; ++step) {
    const auto numbers =
        learner.gradients({task->training_batch(step)}, step).read();
    outcome.numbers.push_back(numbers.sums.mean_loss());
    outcome.numbers.push_back(numbers.sums.accuracy());
    outcome.numbers.push_back(numbers.norm);
    learner.apply(step);
  }
  outcome.numbers.push_back(
      learner.model().overflow(task->training_batch(9), learner.pass(4)));
  outcome.numbers.push_back(evaluate(learner.model(), *task,
                                     {Split::kValidation,
                                      /*batches=*/3,
                                      /*rounds=*/0,
                                      {},
                                      world})
                                .loss);
  for (const auto& parameter : learner.model().parameters()) {
    outcome.parameters.push_back(parameter.value.detach().clone());
  }
  return outcome;
}

void expect_the_outcome_of_one(Config config, int64_t sharing, int64_t ranks) {
  const auto alone = trained(config, nullptr);
  config.train.sequence_parallel = sharing;
  with_ranks(ranks, config, [&](World& world) {
    const auto found = trained(config, &world);
    for (size_t i = 0; i < alone.numbers.size(); ++i) {
      EXPECT_NEAR(found.numbers[i], alone.numbers[i], 1e-10) << i;
    }
    for (size_t i = 0; i < alone.parameters.size(); ++i) {
      const auto off = (found.parameters[i] - alone.parameters[i]).abs().max();
      EXPECT_LE(off.item<double>(), 1e-9);
    }
  });
}

TEST(SequenceParallel, EveryAttentionFollowsTheTrajectoryOfOneRank) {
  for (const char* attention : {"lsh", "local", "full_shared_qk", "full"}) {
    SCOPED_TRACE(attention);
    const auto config =
        config_of({std::string("model.attention=") + attention});
    expect_the_outcome_of_one(config, 3, 3);  // of 4 heads
  }
}

TEST(SequenceParallel, EveryBlockDoes) {
  for (const char* block : {"stored", "residual"}) {
    SCOPED_TRACE(block);
    expect_the_outcome_of_one(config_of({std::string("model.block=") + block}),
                              4, 4);
  }
}

TEST(SequenceParallel, PositionsNgramsAndHeadsOfTheirOwnAreThoseOfTheWhole) {
  expect_the_outcome_of_one(
      config_of({"model.positions=axial", "model.axial_shape=6,8",
                 "model.axial_dims=16,16", "lsh.ngrams=2,3",
                 "model.ngram_length=3", "model.ngram_rows=64"}),
      2, 2);
  expect_the_outcome_of_one(
      config_of({"model.positions=rotary", "model.successor_fraction=0.5",
                 "model.short_convolution=4"}),
      4, 4);
  // The last rank's heads do not hash at all.
  expect_the_outcome_of_one(
      config_of({"model.successor_fraction=0.25", "lsh.hashed_heads=successor",
                 "lsh.local_window=8"}),
      2, 2);
}

TEST(SequenceParallel, GroupsOfRanksShareTheExamples) {
  expect_the_outcome_of_one(config_of({}), 2, 4);
  auto config = config_of({"train.shard_optimizer=true"});
  expect_the_outcome_of_one(config, 2, 4);
}

// Nothing is added up in another order on the way to the head.
TEST(SequenceParallel, OutputsAreThoseOfOneRankBitForBit) {
  for (const char* attention : {"lsh", "local"}) {
    SCOPED_TRACE(attention);
    auto config = config_of({std::string("model.attention=") + attention});
    const auto task = make_task(config);
    const auto tokens = task->training_batch(3).tokens;
    Learner alone(config);
    const auto whole = alone.language_model().outputs(tokens, alone.pass(1));
    config.train.sequence_parallel = 4;
    with_ranks(4, config, [&](World& world) {
      Learner sharing(config, {}, &world);
      const auto part =
          sharing.language_model().outputs(tokens, sharing.pass(1));
      const int64_t positions = config.train.length / 4;
      const int64_t first = world.ranks().rank * positions;
      EXPECT_TRUE(at::equal(part.x1, whole.x1.narrow(1, first, positions)));
      EXPECT_TRUE(at::equal(part.x2, whole.x2.narrow(1, first, positions)));
    });
  }
}

}  // namespace
}  // namespace reformer
