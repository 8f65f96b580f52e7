#include "reformer/config/lsh_config.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

TEST(LshConfig, WindowsAreFoundByTheirNames) {
  for (const Window window : {Window::kChunk, Window::kTrailing}) {
    EXPECT_EQ(Choice<Window>(name_of(window)), window);
  }
  EXPECT_NE(name_of(Window::kChunk), name_of(Window::kTrailing));
}

TEST(LshConfig, UnknownWindowIsAnErrorThatNamesTheSetting) {
  try {
    const Choice<Window> window("trailin");
    ADD_FAILURE() << "an unknown window was accepted: " << window;
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const char* part :
         {"lsh.window", "one of chunk, trailing", "'trailin'"}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
}

// A setting that the visitor leaves out is neither parsed nor saved.
TEST(LshConfig, VisitorSeesEverySettingOnce) {
  LshConfig config;
  std::set<const void*> visited;
  std::set<std::string> names;
  config.visit([&](const char* name, auto& setting, const char*) {
    visited.insert(&setting);
    names.insert(name);
  });
  const std::set<const void*> settings{
      &config.rounds,       &config.chunk_length, &config.n_buckets,
      &config.local_window, &config.window,       &config.causal,
      &config.hashed_heads, &config.local_heads,  &config.ngrams,
      &config.more_rounds};
  EXPECT_EQ(visited, settings);
  EXPECT_EQ(names.size(), settings.size());
}

TEST(Require, JoinsItsPartsIntoTheMessage) {
  EXPECT_NO_THROW(require(true, "unused"));
  try {
    require(false, "op: at least ", 2, " is required, got ", 1.5);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), std::string("op: at least 2 is required, got 1.5"));
  }
}

}  // namespace
}  // namespace reformer
