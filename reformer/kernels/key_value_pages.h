// Keys and values of a text that grows: in pages, so that what is written never
// moves and no position costs more than another.
#pragma once

#include <cstdint>

#include "reformer/kernels/bf16.h"
#include "reformer/kernels/rows.h"

namespace reformer::kernels {

inline constexpr int64_t kPagePositions = 1024;

// Elements that a key or a value takes: whole cache lines, filled with zeros.
inline int64_t page_row_width(int64_t d_head) {
  return (d_head + 15) / 16 * 16;
}

// Of one page: of keys and values, and of buckets behind them.
struct PageShape {
  int64_t heads;
  int64_t width;   // page_row_width(d_head)
  int64_t rounds;  // buckets of each position and head; 0: none

  constexpr int64_t elements() const {
    return heads * kPagePositions * 2 * width;
  }
  constexpr int64_t bytes(int64_t element_size) const {
    return elements() * element_size +
           heads * kPagePositions * rounds * int64_t{sizeof(uint16_t)};
  }
};

// One row of a batch. A page is [heads, kPagePositions, 2, width], a position's
// key and value side by side: they are read together, from anywhere. Behind
// them [heads, kPagePositions, rounds] buckets, where LSH attends on a GPU.
template <class T>
struct KeyValuePages {
  void* const* pages;
  PageShape shape;

  constexpr int64_t row(int64_t head, int64_t position) const {
    return head * kPagePositions + position % kPagePositions;
  }
  constexpr T* page(int64_t position) const {
    return static_cast<T*>(pages[position / kPagePositions]);
  }
  constexpr T* key(int64_t head, int64_t position) const {
    return page(position) + row(head, position) * 2 * shape.width;
  }
  constexpr T* value(int64_t head, int64_t position) const {
    return key(head, position) + shape.width;
  }
  constexpr uint16_t* buckets(int64_t head, int64_t position) const {
    void* behind = page(position) + shape.elements();
    return static_cast<uint16_t*>(behind) + row(head, position) * shape.rounds;
  }
};

// The pages of all rows of a batch.
template <class T>
struct PageTable {
  void* const* pages;  // [batch, capacity]
  int64_t capacity;
  PageShape shape;

  constexpr KeyValuePages<T> row(int64_t batch) const {
    return {pages + batch * capacity, shape};
  }
};

// On CUDA everything lies on the device.
template <class T>
struct AppendKeysArgs {
  Rows<const T> k;          // [batch, heads, length, d_head]
  Rows<const T> v;          // likewise
  const uint16_t* buckets;  // [batch, heads, rounds, length], or null
  PageTable<T> pages;       // with room for what is appended
  const int64_t* first;     // [batch]: where a row's positions begin
  const int64_t* counts;    // [batch]: how many of `length` a row has
  bool unit_keys;           // k / |k|, 0 where |k| <= kSmallestKeyNorm
  int64_t successor_heads;  // of the first so many a value lies beside the key
                            // before it, where attention looks for it
                            // (SuccessorsView); the last one's beside its own
                            // key, too, until another comes
  int64_t kept;             // the last so many have a place of their own
  int64_t batch;
  int64_t heads;
  int64_t length;
  int64_t d_head;
};

namespace cpu {
void append_keys(const AppendKeysArgs<float>& args);
void append_keys(const AppendKeysArgs<double>& args);
}  // namespace cpu

namespace cuda {
void append_keys(const AppendKeysArgs<float>& args, void* stream);
void append_keys(const AppendKeysArgs<Bf16>& args, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
