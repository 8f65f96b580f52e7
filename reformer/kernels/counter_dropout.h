// Dropout whose choices are a function of counters, so that a rebuilt layer
// drops the same elements again and no mask is ever stored.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reformer/base/philox.h"
#include "reformer/kernels/bf16.h"

namespace reformer::kernels {

struct DropoutKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t site = 0;                         // which dropout of the model
  const uint64_t* step_on_device = nullptr;  // of a GPU: read instead of `step`
  int64_t first_example = 0;  // of the step: the number of the batch's first
};

// y = what is left of x; of two types, it is rounded to the shorter one first.
template <class X, class Y = X>
struct CounterDropoutArgs {
  DropoutKey key;
  const X* x;    // [batch, length, width]
  Y* y;          // likewise, written; may be x
  const Y* sum;  // likewise, added; null: 0. Only on a GPU
  int64_t batch;
  int64_t length;
  int64_t width;
  int64_t first_position;  // of a longer sequence
  double probability;      // of an element to become 0
};

// An element's counter is its example of the step, its position and its column;
// one Philox call decides on eight elements, 16 bits each.
constexpr PhiloxKey dropout_philox_key(const DropoutKey& key) {
  const auto mixed = philox(
      {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)},
      {static_cast<uint32_t>(key.step), static_cast<uint32_t>(key.step >> 32),
       key.site, /*purpose: dropout=*/0x44726f70});
  return {mixed[0], mixed[1]};
}

// Of row `row` of the batch.
constexpr uint32_t dropout_example(const DropoutKey& key, int64_t row) {
  return static_cast<uint32_t>(key.first_example + row);
}

struct DropoutRule {
  uint32_t threshold;  // what is drawn below it becomes 0
  double scale;        // of the others
};

inline DropoutRule dropout_rule(double probability) {
  const auto threshold =
      static_cast<uint32_t>(std::min(probability * 65536.0, 65535.0));
  return {threshold, 1.0 / (1.0 - threshold / 65536.0)};
}

namespace cpu {
void counter_dropout(const CounterDropoutArgs<float>& args);
void counter_dropout(const CounterDropoutArgs<double>& args);
}  // namespace cpu

namespace cuda {
void counter_dropout(const CounterDropoutArgs<float>& args, void* stream);
void counter_dropout(const CounterDropoutArgs<Bf16>& args, void* stream);
void counter_dropout(const CounterDropoutArgs<float, Bf16>& args, void* stream);
void counter_dropout(const CounterDropoutArgs<Bf16, float>& args, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
