// Keys and values of a text that grows: in pages, so that what is written never
// moves and no position costs more than another.
#pragma once

#include <cstdint>

#include "reformer/kernels/rows.h"

namespace reformer::kernels {

inline constexpr int64_t kPagePositions = 1024;

// Elements that a key or a value takes: whole cache lines, filled with zeros.
inline int64_t page_row_width(int64_t d_head) {
  return (d_head + 15) / 16 * 16;
}

// One row of a batch. A page is [heads, kPagePositions, 2, width], a position's
// key and value side by side: they are read together, from anywhere.
template <class T>
struct KeyValuePages {
  void* const* pages;
  int64_t width;  // page_row_width(d_head)

  T* key(int64_t head, int64_t position) const {
    const int64_t row = head * kPagePositions + position % kPagePositions;
    T* page = static_cast<T*>(pages[position / kPagePositions]);
    return page + row * 2 * width;
  }
  T* value(int64_t head, int64_t position) const {
    return key(head, position) + width;
  }
};

template <class T>
struct AppendKeysArgs {
  Rows<const T> k;                // [batch, heads, length, d_head]
  Rows<const T> v;                // likewise
  const KeyValuePages<T>* pages;  // [batch], with room for what is appended
  const int64_t* first;           // [batch]: where a row's positions begin
  const int64_t* counts;          // [batch]: how many of `length` a row has
  bool unit_keys;                 // k / |k|, 0 where |k| <= kSmallestKeyNorm
  int64_t batch;
  int64_t heads;
  int64_t d_head;
};

namespace cpu {
void append_keys(const AppendKeysArgs<float>& args);
void append_keys(const AppendKeysArgs<double>& args);
}  // namespace cpu

}  // namespace reformer::kernels
