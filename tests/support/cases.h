// Inputs for tests: which combinations of settings, and what data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reformer/base/instruction_set.h"
#include "reformer/config/lsh_config.h"
#include "tests/support/tolerance.h"

namespace reformer {

// How many values a factor has -> rows of indices, one for each factor, such
// that any two values of any two factors meet in some row. Greedy, and the
// same every time.
std::vector<std::vector<int>> pairwise_cover(const std::vector<int>& values);

enum class Queries {
  kRandom,
  kClustered,  // few directions: buckets overflow
  kIdentical,
  kZero,
  kSomeZero,  // random, every third one zero
};
std::string name_of(Queries queries);

enum class Padding { kNone, kRight, kLeft, kScattered };
std::string name_of(Padding padding);

// Independent standard normal numbers in float32, the same for the same seed.
at::Tensor normal(at::IntArrayRef sizes, uint64_t seed);

// The same numbers with each position's heads beside each other, as projections
// lie in memory.
at::Tensor by_positions(const at::Tensor& x);

// float32 [batch, heads, length, d_head].
at::Tensor make_queries(Queries queries, at::IntArrayRef sizes, uint64_t seed);

// [batch, length], each row padded by another amount; undefined for kNone.
at::Tensor make_mask(Padding padding, int64_t batch, int64_t length);

// Shared queries and keys, values and an output gradient. What is padded is
// NaN in all of them: nothing may look at it.
AttentionInputs make_inputs(Queries queries, Padding padding,
                            at::IntArrayRef sizes, uint64_t seed);

struct LshCase {
  int64_t batch;
  int64_t heads;
  int64_t length;
  int64_t d_head;
  LshConfig config;
  Queries queries;
  Padding padding;
  int64_t successor_heads;
  uint64_t seed;

  std::string name() const;
  AttentionInputs inputs() const;
};

// The cases that LSH attention is tested over.
std::vector<LshCase> lsh_cases();

// Runs `body` with each instruction set that this machine has, then restores
// the one that was in use.
template <class Body>
void for_each_instruction_set(const Body& body) {
  const auto before = instruction_set();
  for (const auto set : supported_instruction_sets()) {
    set_instruction_set(set);
    body(name_of(set));
  }
  set_instruction_set(before);
}

}  // namespace reformer
