#include "reformer/distributed/communicator.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

#include "reformer/base/errors.h"
#include "tests/distributed/rank_threads.h"

namespace reformer {
namespace {

// Numbers whose sum depends on the order in which they are added.
at::Tensor numbers_of(int64_t rank, int64_t count) {
  return at::arange(count, at::kFloat)
      .add_(1 + double(rank))
      .sin_()
      .mul_(std::pow(1e3, double(rank)));
}

TEST(Communicator, SumsAreThoseInTheOrderOfTheRanks) {
  for (const int64_t ranks : {1, 2, 3, 4}) {
    with_ranks(ranks, Config(), [&](World& world) {
      // The last one in pieces.
      for (const int64_t count : {1, 2, 7, 1000, (1 << 19) + 1}) {
        auto expected = numbers_of(0, count);
        for (int64_t rank = 1; rank < ranks; ++rank) {
          expected = expected + numbers_of(rank, count);
        }
        const int64_t cut = count / 3;
        const auto own = numbers_of(world.ranks().rank, count);
        const std::vector<at::Tensor> parts = {own.narrow(0, 0, cut),
                                               own.narrow(0, cut, count - cut)};
        world.sums().sum(parts).wait();
        EXPECT_TRUE(at::equal(own, expected)) << count << " of " << ranks;
      }
    });
  }
}

TEST(Communicator, WhatIsPendingComesInTheOrderOfTheCalls) {
  with_ranks(3, Config(), [&](World& world) {
    std::vector<at::Tensor> tensors;
    std::vector<Pending> pending;
    for (int64_t i = 0; i < 20; ++i) {
      tensors.push_back(at::full({i + 1}, double(i), at::kDouble));
      pending.push_back(world.sums().sum({tensors.back()}));
    }
    for (int64_t i = 19; i >= 0; --i) {
      pending[size_t(i)].wait();
      EXPECT_EQ(tensors[size_t(i)].sum().item<double>(),
                3.0 * double(i) * double(i + 1));
    }
  });
}

TEST(Communicator, ExchangesTakePartsOfAnySize) {
  with_ranks(3, Config(), [&](World& world) {
    const int64_t rank = world.ranks().rank;
    // Rank r sends r + s + 1 numbers 10 r + s to rank s.
    std::vector<int64_t> from_counts, to_counts;
    std::vector<double> sent, expected;
    for (int64_t other = 0; other < 3; ++other) {
      from_counts.push_back(rank + other + 1);
      to_counts.push_back(rank + other + 1);
      sent.insert(sent.end(), size_t(rank + other + 1),
                  double(10 * rank + other));
      expected.insert(expected.end(), size_t(rank + other + 1),
                      double(10 * other + rank));
    }
    const auto to = at::empty({int64_t(expected.size())}, at::kDouble);
    world.sums()
        .exchange(to, at::tensor(sent, at::kDouble), to_counts, from_counts)
        .wait();
    EXPECT_TRUE(at::equal(to, at::tensor(expected, at::kDouble)));
  });
}

// Of unequal parts, in tensors that end anywhere, of more than is sent at once.
TEST(Communicator, EachRanksPartsReachAllOthers) {
  constexpr int64_t kMany = (int64_t{1} << 19) + 7;
  with_ranks(3, Config(), [&](World& world) {
    const auto expected = [](int64_t rank, int64_t i) {
      return at::arange(rank == 1 ? kMany : 5 * rank + i, at::kFloat)
          .add_(double(10 * rank + i));
    };
    std::vector<std::vector<at::Tensor>> parts(3);
    for (int64_t rank = 0; rank < 3; ++rank) {
      for (int64_t i = 0; i < 3; ++i) {
        parts[size_t(rank)].push_back(
            rank == world.ranks().rank ? expected(rank, i)
                                       : at::full_like(expected(rank, i), -1));
      }
    }
    world.sums().share(parts).wait();
    for (int64_t rank = 0; rank < 3; ++rank) {
      for (int64_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(
            at::equal(parts[size_t(rank)][size_t(i)], expected(rank, i)));
      }
    }
  });
}

TEST(Communicator, WordsOfAllRanksArrive) {
  with_ranks(3, Config(), [&](World& world) {
    const int64_t rank = world.ranks().rank;
    const auto words = world.control().gathered(
        std::string(size_t(5 * rank), char('a' + rank)));
    EXPECT_EQ(words, (std::vector<std::string>{"", "bbbbb", "cccccccccc"}));
    EXPECT_FALSE(world.any(false));
    EXPECT_TRUE(world.any(rank == 2));
    EXPECT_EQ(world.first_ones(double(rank) + 0.5), 0.5);
    const auto own = at::full({2, 2}, double(rank + 7), at::kFloat);
    world.sums().broadcast({own}).wait();
    EXPECT_TRUE(at::equal(own, at::full({2, 2}, 7.0, at::kFloat)));
  });
}

// Of more than is sent at once, and as it lies.
TEST(Communicator, WhatOneHasReachesAllOthers) {
  with_ranks(3, Config(), [](World& world) {
    const auto expected = at::arange(700'001, at::kDouble).view({-1, 1});
    const auto wide = at::zeros({700'001, 2}, at::kDouble);
    const auto column = wide.narrow(1, 1, 1);  // every other number
    if (world.ranks().rank == 2) column.copy_(expected);
    world.sums().broadcast({column}, /*from=*/2).wait();
    EXPECT_TRUE(at::equal(column, expected));
    EXPECT_EQ(wide.select(1, 0).abs().max().item<double>(), 0);
  });
}

// However much there is, and of whatever operation.
TEST(Communicator, MemoryThatIsKeptIsBounded) {
  constexpr int64_t kMany = 700'001;
  with_ranks(3, Config(), [](World& world) {
    auto& ranks = world.sums();
    const auto numbers = at::zeros({kMany}, at::kDouble);
    const auto within = [&](const char* operation) {
      EXPECT_LE(ranks.scratch_bytes(), Communicator::kept_bytes(at::kCPU))
          << operation;
    };
    ranks.broadcast({numbers}).wait();
    EXPECT_GT(ranks.scratch_bytes(), 0);
    within("broadcast");
    ranks.sum({numbers}).wait();
    within("sum");
    ranks.share({{numbers}, {numbers.clone()}, {numbers.clone()}}).wait();
    within("share");
    EXPECT_EQ(ranks.gathered(numbers).numel(), 3 * kMany);
    within("gathered");
  });
}

TEST(World, RanksThatDifferSayInWhat) {
  const auto error_with = [](const RankFacts& first, const RankFacts& third) {
    std::string message = "no error";
    try {
      with_ranks(3, Config(), [&](World& world) {
        world.require_alike(world.ranks().rank == 2 ? third : first);
      });
    } catch (const CommonError& error) {
      message = error.what();
    }
    return message;
  };
  const RankFacts facts = {{"version", "1"}, {"train.steps", "5"}};
  EXPECT_EQ(error_with(facts, facts), "no error");
  EXPECT_EQ(error_with(facts, {{"version", "1"}, {"train.steps", "6"}}),
            "ranks must be alike in train.steps: rank 2 has 6, rank 0 5");
  EXPECT_EQ(error_with(facts, {{"version", "2"}}),
            "ranks must be alike in version: rank 2 has 2, rank 0 1");
  EXPECT_EQ(error_with(facts, {{"version", "1"}}),
            "ranks must be alike in train.steps: rank 2 has none, rank 0 5");
}

TEST(World, SequenceParallelRanksDivideTheRanks) {
  Config config;
  config.train.sequence_parallel = 2;
  with_ranks(4, config, [](World& world) {
    EXPECT_EQ(world.data_size(), 2);
    EXPECT_EQ(world.data_rank(), world.ranks().rank / 2);
    EXPECT_EQ(world.sequence()->size(), 2);
    EXPECT_EQ(world.sequence()->rank(), world.ranks().rank % 2);
    const auto sum = at::full({1}, double(world.ranks().rank), at::kDouble);
    world.sequence()->sum({sum}).wait();
    EXPECT_EQ(sum.item<double>(), world.ranks().rank < 2 ? 1.0 : 5.0);
  });
  EXPECT_THROW(with_ranks(3, config, [](World&) {}), Error);
}

// As launched ranks do: a watch asks for groups that are being made.
TEST(World, IsWatchedWhileItConnects) {
  std::signal(SIGPIPE, SIG_IGN);
  Config config;
  config.train.sequence_parallel = 2;
  const auto store = RankStore::within_process();
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Ranks ranks;
      ranks.rank = rank;
      ranks.size = 2;
      ranks.host = "localhost";
      World world(ranks, store, config.distributed.timeout);
      world.watch([](RankWatch&, const RankFault& fault) {
        ADD_FAILURE() << fault.sentence;
      });
      world.connect(config, at::kCPU);
      const auto sum = at::full({1}, double(rank), at::kDouble);
      world.sequence()->sum({sum}).wait();
      EXPECT_EQ(sum.item<double>(), 1);
      world.shut_down();
    });
  }
  for (auto& thread : threads) thread.join();
}

// A rank that ends without a word.
TEST(Communicator, ARankThatLeavesIsAnErrorOfTheOthers) {
  Config config;
  config.distributed.timeout = 30;
  std::mutex mutex;
  std::vector<std::string> errors;
  EXPECT_THROW(
      with_ranks(2, config,
                 [&](World& world) {
                   world.sums().barrier();
                   if (world.ranks().rank == 1) {
                     throw Error("gone");
                   }
                   try {
                     world.sums().sum({at::full({8}, 1.0, at::kFloat)}).wait();
                   } catch (const Error& error) {
                     const std::lock_guard<std::mutex> lock(mutex);
                     errors.emplace_back(error.what());
                     throw;
                   }
                 }),
      Error);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].find("contact with the other ranks was lost: "), 0U);
}

}  // namespace
}  // namespace reformer
