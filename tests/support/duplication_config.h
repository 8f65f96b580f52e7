// What tests of training and generation begin with where small_model.h's has
// too much in it.
#pragma once

#include "reformer/config/config.h"

namespace reformer {

// Two layers of LSH attention, two heads, two hash rounds, for `vocabulary`
// tokens of the task that allows so few.
inline Config duplication_config(int64_t vocabulary, int64_t d_model,
                                 int64_t d_ff, int64_t length) {
  Config config;
  config.task.name = "duplication";
  config.task.alphabet = vocabulary - 1;
  config.model.vocabulary = vocabulary;
  config.model.layers = 2;
  config.model.d_model = d_model;
  config.model.d_ff = d_ff;
  config.model.heads = 2;
  config.lsh.rounds = 2;
  config.train.batch = 2;
  config.train.length = length;
  return config;
}

}  // namespace reformer
