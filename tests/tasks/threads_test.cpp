// What several threads do at once, as training for a GPU does: one makes
// batches while another evaluates and logs. `make test-tsan` looks for races.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "reformer/io/metrics.h"
#include "reformer/tasks/task.h"
#include "tests/data/npy_array.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

constexpr int kThreads = 4;
constexpr int64_t kBatches = 8;

template <class Body>
void at_once(Body&& body) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { body(i); });
}

bool same(const Batch& a, const Batch& b) {
  return at::equal(a.tokens, b.tokens) && at::equal(a.loss_mask, b.loss_mask);
}

void expect_same_batches_for_all(const Config& config) {
  const auto task = make_task(config);
  std::vector<Batch> expected;
  for (int64_t i = 0; i < kBatches; ++i) {
    expected.push_back(task->training_batch(i));
  }
  const Batch validation = task->evaluation_batch(Split::kValidation, 0);
  std::atomic<int> different = 0;
  at_once([&](int) {
    for (int64_t i = 0; i < kBatches; ++i) {
      different += !same(task->training_batch(i), expected[size_t(i)]);
      different +=
          !same(task->evaluation_batch(Split::kValidation, 0), validation);
    }
  });
  EXPECT_EQ(different, 0);
}

Config small_config() {
  Config config;
  config.train.length = 48;
  config.train.batch = 3;
  return config;
}

TEST(Threads, GetTheSameBatchesOfATextAtOnce) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 4000; ++i) text += std::to_string(i * i);
  put_bytes(folder / "text", text);
  Config config = small_config();
  config.task.data = folder / "text";
  expect_same_batches_for_all(config);
}

TEST(Threads, GetTheSameDuplicationsAtOnce) {
  Config config = small_config();
  config.task.name = "duplication";
  expect_same_batches_for_all(config);
}

TEST(Threads, GetTheSameRecallsAtOnce) {
  Config config = small_config();
  config.task.name = "recall";
  expect_same_batches_for_all(config);
}

TEST(Threads, GetTheSameImagesAtOnce) {
  const TemporaryFolder folder;
  const int64_t values = 3 * 4 * 4;
  std::string pixels;
  for (int64_t i = 0; i < 40 * values; ++i) pixels += char(i % 251);
  std::filesystem::create_directory(folder / "data");
  put_bytes(folder / "data/a.npy", npy_array(40, values, pixels));
  Config config = small_config();
  config.task.name = "images";
  config.task.data = folder / "data";
  config.task.cache = folder / "caches";
  config.task.image_size = 4;
  config.train.length = values;
  expect_same_batches_for_all(config);
}

TEST(Threads, WriteTheMetricsOfTheirRunsAtOnce) {
  const TemporaryFolder folder;
  at_once([&](int i) {
    const auto run = folder / ("run-" + std::to_string(i));
    std::filesystem::create_directory(run);
    MetricsWriter writer(run, MetricsStart{});
    for (int64_t step = 1; step <= 20; ++step) {
      writer.write(step, {{"train/loss", double(step + i)}});
    }
  });
  for (int i = 0; i < kThreads; ++i) {
    const auto lines = read_metrics(folder / ("run-" + std::to_string(i)));
    ASSERT_EQ(lines.size(), 20U);
    EXPECT_EQ(lines.back().scalars.front().second, 20 + i);
  }
}

}  // namespace
}  // namespace reformer
