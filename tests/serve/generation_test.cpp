#include "cli/serve/generation.h"

#include <gtest/gtest.h>

#include <future>

#include "reformer/base/errors.h"
#include "tests/support/duplication_config.h"

namespace reformer::cli {
namespace {

// Longer than any machine has been up, from which a clock may count.
using years = std::chrono::duration<int64_t, std::ratio<365 * 24 * 3600>>;
using std::chrono::hours;
using std::chrono::milliseconds;

GenerationRequest request_of(int64_t max_tokens, size_t texts = 1) {
  GenerationRequest request;
  request.prompts.resize(texts);
  request.rows.resize(texts, 0);
  request.before.resize(texts);
  request.max_tokens = max_tokens;
  return request;
}

class GenerationTest : public testing::Test {
 protected:
  TokenWriting writing_{duplication_config(256, 16, 16, 64), nullptr};
};

TEST_F(GenerationTest, TheFirstTokenIsTakenAtOnceAndLaterOnesTogether) {
  Generation generation(request_of(4), writing_);
  generation.add(0, 65, 0, {});
  EXPECT_EQ(std::ssize(generation.take(hours(1), years(100))), 1);
  auto taken = std::async(std::launch::async, [&] {
    return generation.take(hours(1), hours(1)).size();
  });
  for (int i = 0; i < 3; ++i) generation.add(0, 66, 0, {});
  EXPECT_EQ(taken.get(), 3u);  // the last one is the end of the text
  EXPECT_TRUE(generation.done());
}

TEST_F(GenerationTest, AllTextsHaveToEndBeforeThat) {
  Generation generation(request_of(2, 2), writing_);
  generation.add(0, 65, 0, {});
  EXPECT_EQ(std::ssize(generation.take(hours(1), hours(1))), 1);
  auto taken = std::async(std::launch::async, [&] {
    return generation.take(hours(1), hours(1)).size();
  });
  EXPECT_TRUE(generation.add(0, 65, 0, {}));
  generation.add(1, 65, 0, {});
  EXPECT_TRUE(generation.add(1, 65, 0, {}));
  EXPECT_EQ(taken.get(), 3u);
}

TEST_F(GenerationTest, AFaultEndsTheWaiting) {
  Generation generation(request_of(4), writing_);
  generation.add(0, 65, 0, {});
  generation.take(hours(1), hours(1));
  auto taken = std::async(std::launch::async, [&] {
    return generation.take(hours(1), hours(1)).size();
  });
  generation.add(0, 66, 0, {});
  generation.fail("broken");
  EXPECT_EQ(taken.get(), 1u);
  EXPECT_THROW(generation.take(hours(1), hours(1)), Error);
}

}  // namespace
}  // namespace reformer::cli
