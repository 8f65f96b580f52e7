// What holds of every task whose examples are drawn: duplication and recall.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "reformer/tasks/task.h"

namespace reformer::drawn_task {

using Rows = std::set<std::vector<int64_t>>;

// Each row of tokens once.
inline Rows rows_of(const at::Tensor& tokens) {
  Rows rows;
  const int64_t length = tokens.size(1);
  for (int64_t row = 0; row < tokens.size(0); ++row) {
    const int64_t* x = tokens.const_data_ptr<int64_t>() + row * length;
    rows.insert({x, x + length});
  }
  return rows;
}

inline void expect_no_row_twice(const Config& config) {
  const auto task = make_task(config);
  Rows all;
  size_t drawn = 0;
  const auto add = [&](const Batch& batch) {
    all.merge(rows_of(batch.tokens));
    drawn += size_t(batch.tokens.size(0));
  };
  for (int64_t index = 0; index < 13; ++index) {
    add(task->training_batch(index));
    add(task->evaluation_batch(Split::kValidation, index));
    add(task->evaluation_batch(Split::kTest, index));
  }
  EXPECT_EQ(all.size(), drawn);
}

inline void expect_same_examples_in_any_batch(Config config, size_t examples) {
  for (const Split split : {Split::kValidation, Split::kTest}) {
    const auto rows_in_batches_of = [&](int64_t batch) {
      config.train.batch = batch;
      const auto task = make_task(config);
      Rows all;
      for (int64_t i = 0; i < task->evaluation_batches(split); ++i) {
        all.merge(rows_of(task->evaluation_batch(split, i).tokens));
      }
      return all;
    };
    const auto expected = rows_in_batches_of(5);
    EXPECT_EQ(expected.size(), examples);
    EXPECT_EQ(expected, rows_in_batches_of(64));
    EXPECT_EQ(expected, rows_in_batches_of(100));
  }
}

}  // namespace reformer::drawn_task
