#include "reformer/model/memory_limits.h"

#include <gtest/gtest.h>

#include "reformer/base/machine_memory.h"
#include "reformer/model/language_model.h"
#include "reformer/tasks/task.h"
#include "reformer/train/learner.h"
#include "tests/io/file_support.h"

namespace reformer {
namespace {

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "'" << part << "' is not in: " << text;
}

// At once: to draw so many numbers would take hours.
TEST(MemoryLimits, AModelThatCannotFitIsRefusedWithBothNumbers) {
  Config config;
  config.model.layers = 1 << 20;  // 3 million parameters each
  for (const auto& error : {error_of([&] {
                              LanguageModel{config, {}};
                            }),
                            error_of([&] { Learner(config, {}); })}) {
    expect_contains(error, "model: 3028491307776 parameters");
    expect_contains(error, " GiB at least, and there are " +
                               gibibytes(double(machine_memory())) +
                               " of memory on this machine; fewer "
                               "model.layers");
  }
}

TEST(MemoryLimits, ABatchThatCannotFitIsRefusedWithBothNumbers) {
  Config config;
  config.task.name = "duplication";
  config.train.batch = 2147483647;
  config.train.length = 4096;
  const std::string start =
      "train.batch: 2147483647 sequences of train.length = 4096 need ";
  expect_contains(error_of([&] { make_task(config); }), start + "73728.0 GiB");
  expect_contains(error_of([&] { Learner(config, {}); }), start);
}

TEST(MemoryLimits, WhatFitsIsNotRefused) {
  Config config;
  EXPECT_NO_THROW(require_memory_for_step(config, {}));
  // Nearly all of the memory: may work, if nothing else is there.
  config.train.length = 1024;
  config.train.batch = machine_memory() / (9 * 1024);
  EXPECT_NO_THROW(require_memory_for_batch(config.train));
  ++config.train.batch;
  EXPECT_NE(error_of([&] { require_memory_for_batch(config.train); }), "");
}

}  // namespace
}  // namespace reformer
