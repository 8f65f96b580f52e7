// Parameters in host memory: the schedule on a CPU, where host and device are
// one; tests/cuda has the same on a GPU.
#include "reformer/train/parameter_offload.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "reformer/tasks/task.h"
#include "reformer/train/learner.h"
#include "tests/support/duplication_config.h"

namespace reformer {
namespace {

struct Settings {
  std::string optimizer;
  double clip;
  int64_t accumulate;
  int64_t layers;
};

std::ostream& operator<<(std::ostream& out, const Settings& s) {
  return out << s.optimizer << ", clip " << s.clip << ", " << s.accumulate
             << " batches a step, " << s.layers << " layers";
}

Config config_of(const Settings& settings, bool offload) {
  Config config = duplication_config(16, 32, 48, 64);
  config.model.layers = settings.layers;
  config.model.dropout = 0.1;
  config.model.short_convolution = 3;  // filters are views of what moves
  config.lsh.chunk_length = 8;
  config.train.optimizer = settings.optimizer;
  config.train.learning_rate = 0.01;
  config.train.clip = settings.clip;
  config.train.accumulate = settings.accumulate;
  config.train.offload = offload;
  return config;
}

std::vector<Batch> batches_of(const Task& task, int64_t step, int64_t count) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < count; ++i) {
    batches.push_back(task.training_batch(step * count + i));
  }
  return batches;
}

// Loss and norm of every step.
std::vector<double> take_steps(Learner& learner, const Config& config,
                               int64_t first, int64_t last) {
  const auto task = make_task(config);
  std::vector<double> numbers;
  for (int64_t step = first; step <= last; ++step) {
    const auto gradients = learner.gradients(
        batches_of(*task, step, config.train.accumulate), step);
    learner.apply(step);
    numbers.push_back(gradients.read().sums.loss);
    numbers.push_back(gradients.read().norm);
  }
  return numbers;
}

std::vector<NamedTensor> copy_of(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> copies;
  for (const auto& [name, value] : tensors) {
    copies.push_back({name, value.detach().clone()});
  }
  return copies;
}

std::vector<NamedTensor> parameters_of(const Learner& learner) {
  std::vector<NamedTensor> parameters;
  for (const auto& parameter : learner.model().parameters()) {
    parameters.push_back({parameter.name, parameter.value});
  }
  return copy_of(parameters);
}

void expect_equal(const std::vector<NamedTensor>& expected,
                  const std::vector<NamedTensor>& found) {
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(expected[i].name, found[i].name);
    EXPECT_TRUE(at::equal(expected[i].value, found[i].value))
        << expected[i].name;
  }
}

class ParameterOffloadTest : public testing::TestWithParam<Settings> {};

TEST_P(ParameterOffloadTest, StepsEqualTheResidentOnesBitForBit) {
  const auto config = config_of(GetParam(), /*offload=*/false);
  Learner resident(config);
  Learner visiting(config_of(GetParam(), /*offload=*/true));
  EXPECT_EQ(take_steps(resident, config, 1, 5),
            take_steps(visiting, config, 1, 5));
  resident.synchronize();
  visiting.synchronize();
  expect_equal(parameters_of(resident), parameters_of(visiting));
  expect_equal(resident.optimizer().state(), visiting.optimizer().state());
}

// What the device still held must not survive a load.
TEST_P(ParameterOffloadTest, GoesOnFromACheckpoint) {
  const auto config = config_of(GetParam(), /*offload=*/true);
  Learner first(config);
  take_steps(first, config, 1, 3);
  first.synchronize();
  const auto parameters = parameters_of(first);
  const auto state = copy_of(first.optimizer().state());
  const auto expected = take_steps(first, config, 4, 6);
  Learner second(config);
  take_steps(second, config, 1, 1);
  second.load(parameters, state);
  EXPECT_EQ(expected, take_steps(second, config, 4, 6));
}

TEST_P(ParameterOffloadTest, EvaluationEqualsTheResidentOne) {
  const auto config = config_of(GetParam(), /*offload=*/false);
  Learner resident(config);
  Learner visiting(config_of(GetParam(), /*offload=*/true));
  take_steps(resident, config, 1, 2);
  take_steps(visiting, config, 1, 2);
  const auto batch = make_task(config)->training_batch(1000);
  const Pass pass{0, 0, /*training=*/false, 0};
  const auto loss = [&](Learner& learner) {
    return learner.model().evaluate(batch, pass).loss;
  };
  EXPECT_EQ(loss(resident), loss(visiting));
}

INSTANTIATE_TEST_SUITE_P(
    All, ParameterOffloadTest,
    testing::Values(Settings{"adafactor", 0, 1, 5},
                    Settings{"adafactor", 0.5, 1, 4},
                    Settings{"adamw", 0, 1, 3}, Settings{"adamw", 0.5, 3, 5},
                    Settings{"adafactor", 0, 2, 2}, Settings{"muon", 0, 1, 3},
                    Settings{"muon", 0.5, 2, 4}, Settings{"adam", 0, 1, 1},
                    Settings{"adam", 0.5, 2, 1}));

// Where the numbers are: of blocks on the host, one after the other.
TEST(ParameterOffload, LieTogetherBetweenSteps) {
  const auto config = config_of({"adamw", 0, 1, 3}, /*offload=*/true);
  Learner learner(config);
  take_steps(learner, config, 1, 2);
  std::map<int64_t, std::set<const void*>> memories;
  for (const auto& parameter : learner.model().parameters()) {
    const int64_t block = block_of(parameter.name);
    if (block < 0) continue;
    memories[block].insert(parameter.value.storage().data());
  }
  ASSERT_EQ(memories.size(), 3U);
  for (const auto& [block, memory] : memories) {
    EXPECT_EQ(memory.size(), 1U) << "block " << block;
  }
}

TEST(ParameterOffload, AreNotForStoredActivations) {
  auto config = config_of({"adamw", 0, 1, 3}, /*offload=*/true);
  config.model.block = "stored";
  EXPECT_THROW(Learner{config}, std::runtime_error);
}

}  // namespace
}  // namespace reformer
