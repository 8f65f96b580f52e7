#include "cli/serve/engine.h"

#include <gtest/gtest.h>

#include <future>
#include <latch>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "tests/support/duplication_config.h"

namespace reformer::cli {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kContext = 3000;
constexpr std::chrono::seconds kPatience{30};  // of tests that fail

Config small_config() {
  auto config = duplication_config(256, 16, 16, kContext);
  config.model.attention = std::string("lsh");
  config.model.layers = 2;
  config.lsh.chunk_length = 16;
  config.lsh.n_buckets = 64;
  config.lsh.window = Window::kTrailing;
  return config;
}

class EngineTest : public testing::Test {
 protected:
  // Every part of a prompt gives a turn.
  EngineTest() : engine_(&model_, &writing_, {3, 8, 3 * kContext, 0}) {}

  std::shared_ptr<Generation> submit(int64_t prompt, int64_t max_tokens) {
    GenerationRequest request;
    request.prompts = {std::vector<int64_t>(static_cast<size_t>(prompt), 7)};
    request.rows = {0};
    request.before = {""};
    request.max_tokens = max_tokens;
    return engine_.submit(std::move(request));
  }

  // Until it is interrupted.
  static void work_on() {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < until) interruption_point();
  }

  static int64_t take_all(Generation& generation) {
    int64_t taken = 0;
    while (!generation.done()) {
      taken += std::ssize(generation.take(milliseconds(100), {}));
    }
    return taken;
  }

  LanguageModel model_{small_config()};
  TokenWriting writing_{small_config(), nullptr};
  Engine engine_;
};

TEST_F(EngineTest, TextsGoOnWhileAPromptIsRead) {
  std::latch begun(1);
  std::latch go(1);
  auto busy = std::async(std::launch::async, [&] {
    engine_.run([&] {
      begun.count_down();
      go.wait();
    });
  });
  begun.wait();
  const auto running = submit(1, kContext - 10);
  const auto other = submit(2000, 1);
  go.count_down();
  EXPECT_EQ(take_all(*other), 1);
  EXPECT_GT(engine_.counts().turns, 4);
  running->cancel();
  busy.get();
}

TEST_F(EngineTest, AShortPromptIsReadWhileALongOneIs) {
  // Both come while the engine has other things to do, as above.
  std::latch begun(1);
  std::latch go(1);
  auto busy = std::async(std::launch::async, [&] {
    engine_.run([&] {
      begun.count_down();
      go.wait();
    });
  });
  begun.wait();
  const auto lengthy = submit(2900, 5);
  const auto brief = submit(3, 2);
  go.count_down();
  while (lengthy->take(milliseconds(100), {}).empty()) {
  }
  EXPECT_EQ(std::ssize(brief->take({}, {})), 2);
  EXPECT_TRUE(brief->done());
  take_all(*lengthy);
  busy.get();
}

TEST_F(EngineTest, MoreTextsThanGoOnTogetherAllEnd) {
  std::vector<std::shared_ptr<Generation>> all;
  for (int64_t i = 0; i < 8; ++i) all.push_back(submit(300 * i, 3 + i));
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(take_all(*all[i]), 3 + i);
}

TEST_F(EngineTest, TextsGoOnAndComeWhileOtherWorkIsDone) {
  const auto running = submit(1, kContext - 10);
  while (running->take(milliseconds(100), {}).empty()) {
  }
  std::shared_ptr<Generation> other;
  engine_.run([&] {
    other = submit(3, 200);
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!other->done() && std::chrono::steady_clock::now() < until) {
      interruption_point();
      other->take({}, {});
    }
  });
  EXPECT_TRUE(other->done());
  running->cancel();
}

TEST_F(EngineTest, WorkEndsWhenNobodyWaitsForItAnyLonger) {
  std::atomic<bool> begun = false;
  EXPECT_THROW(engine_.run(
                   [&] {
                     begun = true;
                     work_on();
                   },
                   [&] { return begun.load(); }),
               Interrupted);
  EXPECT_THROW(engine_.run([] {}, [] { return true; }), Interrupted);
}

TEST_F(EngineTest, WorkEndsAfterAStop) {
  EXPECT_THROW(engine_.run([&] {
    engine_.stop();
    work_on();
  }),
               Interrupted);
}

TEST_F(EngineTest, AfterAStopNobodyWaits) {
  const auto running = submit(1, kContext - 10);
  const auto lengthy = submit(2900, 5);
  const auto brief = submit(3, 2000);
  while (running->take(milliseconds(100), {}).empty()) {
  }
  engine_.stop();
  for (const auto& text : {running, lengthy, brief}) {
    try {
      take_all(*text);  // it came to its end before the stop
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace reformer::cli
