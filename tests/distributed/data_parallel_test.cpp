// A step of several ranks is the step of one.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

#include "reformer/model/parameter_gradients.h"
#include "reformer/optim/sharded_optimizer.h"
#include "reformer/tasks/task.h"
#include "reformer/train/evaluation.h"
#include "reformer/train/learner.h"
#include "reformer/train/not_finite.h"
#include "tests/distributed/rank_threads.h"

namespace reformer {
namespace {

constexpr int64_t kSteps = 20;
constexpr int64_t kFewSteps = 5;

Config config_of(const std::string& optimizer) {
  Config config;
  config.task.name = "duplication";
  config.task.alphabet = 15;
  config.model.vocabulary = 16;
  config.model.layers = 2;
  config.model.d_model = 32;
  config.model.d_ff = 48;
  config.model.heads = 2;
  config.model.dropout = 0.1;
  config.lsh.rounds = 2;
  config.lsh.chunk_length = 8;
  config.train.length = 32;
  config.train.batch = 5;
  config.train.optimizer = optimizer;
  config.train.learning_rate = 0.01;
  config.train.clip = 0.5;
  config.train.accumulate = 2;
  return config;
}

struct Trajectory {
  std::vector<double> numbers;  // losses and norms
  std::vector<at::Tensor> parameters;
  double evaluated = 0;
};

Trajectory trained(const Config& config, World* world,
                   const Placement& placement, int64_t steps = kSteps) {
  const auto task = make_task(config);
  Learner learner(config, placement, world);
  Trajectory found;
  for (int64_t step = 1; step <= steps; ++step) {
    std::vector<Batch> batches;
    for (int64_t i = 0; i < config.train.accumulate; ++i) {
      batches.push_back(
          task->training_batch((step - 1) * config.train.accumulate + i));
    }
    const auto numbers = learner.gradients(batches, step).read();
    found.numbers.push_back(numbers.sums.mean_loss());
    found.numbers.push_back(numbers.sums.accuracy());
    found.numbers.push_back(numbers.norm);
    learner.apply(step);
  }
  learner.synchronize();
  for (const auto& parameter : learner.model().parameters()) {
    found.parameters.push_back(parameter.value.detach().clone());
  }
  found.evaluated =
      evaluate(learner.model(), *task,
               {Split::kValidation, /*batches=*/5, /*rounds=*/0, {}, world})
          .loss;
  return found;
}

// Of one rank, after all agreed to the bit.
Trajectory trained_by_ranks(const Config& config, int64_t ranks,
                            const Placement& placement,
                            int64_t steps = kSteps) {
  std::mutex mutex;
  std::vector<Trajectory> found;
  with_ranks(ranks, config, [&](World& world) {
    auto one = trained(config, &world, placement, steps);
    const std::lock_guard<std::mutex> lock(mutex);
    found.push_back(std::move(one));
  });
  for (const auto& one : found) {
    EXPECT_EQ(one.numbers, found[0].numbers);
    EXPECT_EQ(one.evaluated, found[0].evaluated);
    for (size_t i = 0; i < one.parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(one.parameters[i], found[0].parameters[i]));
    }
  }
  return found[0];
}

void expect_close(const Trajectory& a, const Trajectory& b, double tolerance) {
  ASSERT_EQ(a.numbers.size(), b.numbers.size());
  for (size_t i = 0; i < a.numbers.size(); ++i) {
    EXPECT_NEAR(a.numbers[i], b.numbers[i], tolerance) << i;
  }
  EXPECT_NEAR(a.evaluated, b.evaluated, tolerance);
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    EXPECT_LE((a.parameters[i] - b.parameters[i]).abs().max().item<double>(),
              tolerance);
  }
}

TEST(DataParallel, AnyNumberOfRanksFollowsTheTrajectoryOfOne) {
  for (const char* optimizer : {"adam", "adafactor", "muon"}) {
    SCOPED_TRACE(optimizer);
    const auto config = config_of(optimizer);
    const auto alone = trained(config, nullptr, Placement(at::kDouble));
    for (const int64_t ranks : {1, 2, 4}) {
      SCOPED_TRACE(ranks);
      expect_close(trained_by_ranks(config, ranks, Placement(at::kDouble)),
                   alone, 1e-9);
    }
  }
}

std::vector<NamedTensor> copies(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> result;
  for (const auto& [name, value] : tensors) {
    result.push_back({name, value.clone()});
  }
  return result;
}

TEST(ShardedOptimizer, StepsAreThoseOfAWholeOne) {
  for (const char* optimizer : {"adamw", "adafactor", "muon"}) {
    SCOPED_TRACE(optimizer);
    auto config = config_of(optimizer);
    const Placement exact(at::kDouble);
    const auto whole = trained_by_ranks(config, 3, exact, kFewSteps);
    config.train.shard_optimizer = true;
    for (const bool offload : {false, true}) {
      config.train.offload = offload;
      expect_close(trained_by_ranks(config, 3, exact, kFewSteps), whole, 1e-12);
    }
  }
}

// The state of one rank: rows of one name follow one another from part to part.
std::vector<NamedTensor> joined(
    const std::vector<std::vector<NamedTensor>>& parts) {
  std::vector<NamedTensor> whole;
  for (const auto& part : parts) {
    for (const auto& own : part) {
      const auto before = std::find_if(
          whole.begin(), whole.end(),
          [&](const NamedTensor& tensor) { return tensor.name == own.name; });
      if (before == whole.end()) {
        whole.push_back(own);
      } else {
        before->value = at::cat({before->value, own.value});
      }
    }
  }
  return whole;
}

TEST(ShardedOptimizer, PartsOfAllRanksAreTheStateOfOne) {
  for (const char* optimizer : {"adam", "adafactor", "muon"}) {
    SCOPED_TRACE(optimizer);
    auto config = config_of(optimizer);
    const auto task = make_task(config);
    const auto step = [&](Learner& learner, int64_t number) {
      learner.gradients({task->training_batch(number)}, number);
      learner.apply(number);
    };
    Learner alone(config, Placement(at::kDouble));
    for (int64_t i = 1; i <= 3; ++i) step(alone, i);
    config.train.shard_optimizer = true;
    std::vector<NamedTensor> parameters;
    std::vector<std::vector<NamedTensor>> parts(4);
    std::mutex mutex;
    with_ranks(4, config, [&](World& world) {
      Learner learner(config, Placement(at::kDouble), &world);
      for (int64_t i = 1; i <= 3; ++i) step(learner, i);
      const std::lock_guard<std::mutex> lock(mutex);
      parts[size_t(world.ranks().rank)] = copies(learner.optimizer().state());
      if (!world.first()) return;
      for (const auto& parameter : learner.model().parameters()) {
        parameters.push_back(
            {parameter.name, parameter.value.detach().clone()});
      }
    });
    const auto state = joined(parts);
    std::map<std::string, at::Tensor> expected;
    for (const auto& [name, value] : alone.optimizer().state()) {
      expected[name] = value;
    }
    ASSERT_EQ(state.size(), expected.size());
    for (const auto& [name, value] : state) {
      ASSERT_EQ(value.sizes(), expected.at(name).sizes()) << name;
      const auto off = (value - expected.at(name)).abs().max();
      EXPECT_LE(off.item<double>(), 1e-10) << name;
    }
    // On another number of ranks.
    step(alone, 4);
    with_ranks(3, config, [&](World& world) {
      Learner learner(config, Placement(at::kDouble), &world);
      learner.load(parameters, state);
      step(learner, 4);
      for (size_t i = 0; i < parameters.size(); ++i) {
        const auto off = (learner.model().parameters()[i].value -
                          alone.model().parameters()[i].value)
                             .abs()
                             .max();
        EXPECT_LE(off.item<double>(), 1e-9) << parameters[i].name;
      }
    });
  }
}

// Of models of the usual shape, whose matrices differ in size. Muon takes whole
// matrices: those of 3 wide layers are as large as 33 small ones, of which one
// rank has 9, and less of what Muon leaves to Adam.
TEST(ShardedOptimizer, EachOfFourRanksKeepsAQuarter) {
  struct Shape {
    int64_t layers;
    int64_t d_model;
  };
  for (const Shape& shape : {Shape{3, 128}, {12, 128}, {3, 512}}) {
    for (const char* optimizer : {"adam", "adamw", "adafactor", "muon"}) {
      auto config = config_of(optimizer);
      config.model.vocabulary = 256;
      config.model.layers = shape.layers;
      config.model.d_model = shape.d_model;
      config.model.d_ff = 4 * shape.d_model;
      config.model.heads = 8;
      const LanguageModel model(config);
      const auto bytes_of = [](const Optimizer& kept) {
        double bytes = 0;
        for (const auto& [name, value] : kept.state()) {
          bytes += double(value.nbytes());
        }
        return bytes;
      };
      const double all =
          bytes_of(*make_optimizer(config.train, model.parameters()));
      with_ranks(4, config, [&](World& world) {
        const ShardedOptimizer own(config.train, model.parameters(),
                                   world.sums());
        EXPECT_LE(bytes_of(own) / all, 0.26)
            << optimizer << " of " << shape.layers << " layers of "
            << shape.d_model << ", rank " << world.ranks().rank;
      });
    }
  }
}

TEST(DataParallel, TwoRanksTwiceGiveTheSameBits) {
  const auto config = config_of("adafactor");
  const auto once = trained_by_ranks(config, 2, {});
  const auto again = trained_by_ranks(config, 2, {});
  EXPECT_EQ(once.numbers, again.numbers);
  for (size_t i = 0; i < once.parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(once.parameters[i], again.parameters[i]));
  }
}

TEST(DataParallel, OffloadedBlocksFollowIt) {
  for (const double clip : {0.0, 0.5}) {
    auto config = config_of("adamw");
    config.train.clip = clip;
    if (clip == 0) config.train.accumulate = 1;
    const auto alone = trained(config, nullptr, Placement(at::kDouble));
    config.train.offload = true;
    expect_close(trained_by_ranks(config, 3, Placement(at::kDouble)), alone,
                 1e-9);
  }
}

// Sentences of a batch may be fewer than ranks.
TEST(DataParallel, ARankWithoutExamplesFollowsToo) {
  auto config = config_of("adam");
  config.task.name = "translation-toy";
  config.model.encoder_layers = 1;
  config.model.vocabulary = 3 + 2 * config.task.alphabet;
  config.train.batch = 1;
  config.train.batch_tokens = 64;
  config.train.accumulate = 1;
  const auto alone = trained(config, nullptr, Placement(at::kDouble));
  expect_close(trained_by_ranks(config, 4, Placement(at::kDouble)), alone,
               1e-9);
}

TEST(DataParallel, FewerExamplesThanRanksAreAnError) {
  auto config = config_of("adam");
  config.train.batch = 1;
  EXPECT_THROW(
      with_ranks(2, config, [&](World& world) { Learner(config, {}, &world); }),
      Error);
}

// Nothing waits for what one rank would have to tell itself.
TEST(DataParallel, OneRankSumsNothing) {
  for (const bool offload : {false, true}) {
    auto config = config_of("adam");
    config.train.offload = offload;
    config.train.shard_optimizer = true;
    const Placement exact(at::kDouble);
    const auto alone = trained(config, nullptr, exact, kFewSteps);
    with_ranks(1, config, [&](World& world) {
      expect_close(trained(config, &world, exact, kFewSteps), alone, 1e-12);
      EXPECT_EQ(world.sums().begun(), 0);
    });
  }
}

TEST(GradientSum, EachPartIsSentWhenItIsComplete) {
  const auto config = config_of("adam");  // of two layers
  with_ranks(2, config, [&](World& world) {
    LanguageModel model(config);
    GradientSum sum(model, world.sums());
    const auto sent_by = [&](const auto& happened) {
      const int64_t before = world.sums().begun();
      happened();
      return world.sums().begun() - before;
    };
    const auto pass = [&] {
      std::vector<int64_t> sent;
      sum.begin_batch();
      for (const int64_t block : {1, 0}) {
        sent.push_back(sent_by([&] { sum.enter(block, block - 1, true); }));
        sent.push_back(sent_by([&] { sum.leave(block, true); }));
      }
      return sent;
    };
    sum.begin_step(/*batches=*/2);
    EXPECT_EQ(pass(), (std::vector<int64_t>{0, 0, 0, 0}));
    EXPECT_EQ(pass(), (std::vector<int64_t>{1, 1, 0, 1}));  // the head first
    const auto more = at::full({1}, 1.0, at::kDouble);
    EXPECT_EQ(sent_by([&] { sum.finish(more); }), 2);  // and embeddings
    EXPECT_EQ(more.item<double>(), 2);
    // A captured pass has nobody who hears of blocks, and tells of none.
    sum.begin_captured_step();
    EXPECT_EQ(pass(), (std::vector<int64_t>{0, 0, 0, 0}));
    EXPECT_EQ(sent_by([&] { sum.finish(more); }), 5);
  });
}

// Hears what GradientSum hears, and notes what is on its way by then.
class SendingNotes : public BlockObserver {
 public:
  SendingNotes(GradientSum& sum, Communicator& ranks)
      : sum_(sum), ranks_(ranks) {}

  void enter(int64_t block, int64_t next, bool backward) override {
    sum_.enter(block, next, backward);
    if (backward) begun.push_back(ranks_.begun());
  }
  void leave(int64_t block, bool backward) override {
    sum_.leave(block, backward);
    if (backward) begun.push_back(ranks_.begun());
  }

  std::vector<int64_t> begun;

 private:
  GradientSum& sum_;
  Communicator& ranks_;
};

// Were a part sent before it is complete, what comes later would be missing in
// the sums of all.
TEST(GradientSum, BlocksAreSentCompleteWhileThePassGoesOn) {
  for (const char* block : {"reversible", "residual"}) {
    SCOPED_TRACE(block);
    auto config = config_of("adam");  // of two layers
    config.model.block = block;
    const auto task = make_task(config);
    const Pass pass{/*seed=*/1, /*step=*/1, /*training=*/true, /*rounds=*/0};
    const Placement exact(at::kDouble);
    const auto alone = make_model(config, exact);
    alone->add_gradients(task->training_batch(0), pass, 1);
    with_ranks(2, config, [&](World& world) {
      const auto model = make_model(config, exact);
      GradientSum sum(*model, world.sums());
      SendingNotes notes(sum, world.sums());
      model->set_observer(&notes);
      sum.begin_step(/*batches=*/1);
      sum.begin_batch();
      const auto sums = model->add_gradients(task->training_batch(0), pass, 1);
      // The head's, the last block's, and the first one's.
      EXPECT_EQ(notes.begun, (std::vector<int64_t>{1, 2, 2, 3}));
      sum.finish(sums);
      for (size_t i = 0; i < model->parameters().size(); ++i) {
        const auto expected = gradient_sum(alone->parameters()[i].value) * 2;
        const auto found = gradient_sum(model->parameters()[i].value);
        EXPECT_LE((found - expected).abs().max().item<double>(), 1e-12)
            << model->parameters()[i].name;
      }
    });
  }
}

// Whose loss is not finite, where others' are.
TEST(NotFinite, TheRankIsNamed) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  with_ranks(3, Config(), [&](World& world) {
    StepStatistics numbers;
    numbers.own_loss = world.ranks().rank == 2 ? kNan : 1.0;
    EXPECT_EQ(rank_not_finite(numbers, &world), " on rank 2");
    numbers.own_loss = world.ranks().rank == 0 ? 1.0 : kNan;
    EXPECT_EQ(rank_not_finite(numbers, &world), " on rank 1");
    numbers.own_loss = 1;
    EXPECT_EQ(rank_not_finite(numbers, &world), "");
  });
}

}  // namespace
}  // namespace reformer
