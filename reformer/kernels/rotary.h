// Rotary positions: pairs of a vector's columns, turned by angles that grow
// with its position, so that products depend on distances (Su et al., RoFormer,
// arXiv 2104.09864).
#pragma once

#include <cmath>
#include <cstdint>

#include "reformer/kernels/bf16.h"
#include "reformer/kernels/rows.h"

namespace reformer::kernels {

// Pair c of `pairs` turns by slowest^(-c / pairs) radians a position.
inline constexpr double kSlowestTurn = 10000;

inline double radians_of_pair(int64_t pair, int64_t pairs) {
  return std::pow(kSlowestTurn, -double(pair) / double(pairs));
}

inline constexpr int64_t kMaxRotaryPairs = 128;

template <class T>
struct RotaryArgs {
  Rows<const T> x;       // [batch, heads, length, d_head]
  Rows<T> y;             // likewise, written: x turned; not x
  const int64_t* first;  // [batch]: the position of row 0; null: 0
  int64_t first_head;    // those before it stay as they are
  int64_t pairs;         // columns c and c + pairs are one, for c < pairs
  bool back;             // undoes it: the gradient
  int64_t batch;
  int64_t heads;
  int64_t length;
  int64_t d_head;
};

namespace cpu {
void rotary(const RotaryArgs<float>& args);
void rotary(const RotaryArgs<double>& args);
}  // namespace cpu

// d_head is a multiple of 8, and rows lie at multiples of 16 bytes.
namespace cuda {
void rotary(const RotaryArgs<float>& args, void* stream);
void rotary(const RotaryArgs<Bf16>& args, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
