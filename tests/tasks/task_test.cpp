#include "reformer/tasks/task.h"

#include <gtest/gtest.h>

#include <string>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

TEST(Task, NoneHasNoBatches) {
  Config config;
  config.task.name = "none";
  config.model.vocabulary = 16;
  try {
    make_task(config);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("task.name: ", 0), 0u)
        << error.what();
  }
}

}  // namespace
}  // namespace reformer
