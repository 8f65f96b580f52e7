// Dropout whose choices are a function of counters, so that a rebuilt layer
// drops the same elements again and no mask is ever stored.
#pragma once

#include <cstdint>

namespace reformer::kernels {

struct DropoutKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t site = 0;  // which dropout of the model
};

template <class T>
struct CounterDropoutArgs {
  DropoutKey key;
  const T* x;  // [batch, length, width]
  T* y;        // likewise, written; may be x
  int64_t batch;
  int64_t length;
  int64_t width;
  int64_t first_position;  // of a longer sequence
  double probability;      // of an element to become 0
};

namespace cpu {
void counter_dropout(const CounterDropoutArgs<float>& args);
void counter_dropout(const CounterDropoutArgs<double>& args);
}  // namespace cpu

}  // namespace reformer::kernels
