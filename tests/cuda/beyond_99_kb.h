// Interval attention that does not fit into 99 KB of shared memory in blocks of
// the usual size: what GPUs of compute capability 8.6 and 8.9 have.
#pragma once

#include <vector>

#include "tests/cuda/interval_attention_problem.h"

namespace reformer::kernels {

// The first rounds of all but the last fit; the backward pass of the last does
// not begin to.
inline std::vector<Case> cases_beyond_99_kb(int64_t length) {
  struct Sizes {
    int64_t d;
    int64_t rounds;
    bool shared;
  };
  std::vector<Case> cases;
  for (const auto& [d, rounds, shared] : {Sizes{128, 16, true},
                                          {72, 33, true},
                                          {64, 28, true},
                                          {32, 41, true},
                                          {128, 60, true},
                                          {64, 22, false},
                                          {128, 2, false}}) {
    Case c;
    c.heads = 1;
    c.length = length;
    c.d = d;
    c.rounds = rounds;
    c.n_buckets = 4;
    c.shared = shared;
    c.padded = rounds == 16;
    c.causal = rounds != 28;
    cases.push_back(c);
  }
  return cases;
}

}  // namespace reformer::kernels
