// The attention of the next position of each text: what generating token by
// token asks of a layer (docs/numerics.md has the function). A CPU attends, to
// positions that its caller lists; a GPU finds them, attends, and has the
// position join the pages and the history, in one kernel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reformer/kernels/bucket_history.h"
#include "reformer/kernels/key_value_pages.h"

namespace reformer::kernels {

// What every head of a position sees, LSH rounds aside: the last so many before
// it, `chunk` of whole ones too: those before it in its own chunk.
struct EarlierPositions {
  static constexpr int64_t kAll = int64_t{1} << 40;

  int64_t last = 0;
  int64_t chunk = 0;    // 0: none
  bool itself = false;  // also its own

  constexpr int64_t begin(int64_t position) const {
    const int64_t n = last + (chunk > 0 ? position % chunk : 0);
    return n < position ? position - n : 0;
  }
};

struct PositionRange {
  int64_t begin = 0;
  int64_t end = 0;
};

struct PositionList {
  const int32_t* data = nullptr;
  int64_t size = 0;
};

inline constexpr int64_t kMaxNextRounds = 64;

namespace cpu {

template <class T>
struct AttendNextArgs {
  Rows<const T> q;              // [batch, heads, 1, d_head]
  PageTable<T> pages;           // of every row
  const int64_t* position;      // [batch]: the query's own, in the pages too
  const PositionRange* ranges;  // [batch]: what all heads see, and
  const PositionList* lists;    // [batch, heads, n_lists]: what each sees
  int64_t n_lists;              //   besides; a position counts once
  int64_t lists_together;  // in each group of so many lists, one of the range
                           // in every group; 0: all lists are one group
  double scale;            // of the scores
  Rows<T> output;  // [batch, heads, 1, d_head], written: the query's own value
                   // where it sees nobody
  int64_t batch;
  int64_t heads;
  int64_t d_head;
};

void attend_next(const AttendNextArgs<float>& args);
void attend_next(const AttendNextArgs<double>& args);

}  // namespace cpu

namespace cuda {

// All pointers are the device's. What a (row, head) sees is cut into parts, a
// block each; the last block to arrive puts the parts together.
template <class T>
struct AttendNextArgs {
  Rows<const T> q;  // [batch, heads, 1, d_head]
  Rows<const T> k;  // of shared ones q
  Rows<const T> v;
  const uint16_t* buckets;  // [batch, heads, rounds]; null without rounds
  const int64_t* position;  // [batch]: of q, k, v
  PageTable<T> pages;       // with room for them, which they are written to
  BucketHistory history;    // which the position joins; 0 rounds: none
  EarlierPositions earlier;
  int64_t longest;  // no row's position is beyond it; sizes the grid alone
  bool unit_keys;   // k / |k|, 0 where |k| <= kSmallestKeyNorm
  int64_t successor_heads;  // as AppendKeysArgs', but that the newest value
                            // lies beside the key before it alone
  double scale;             // of the scores
  Rows<T> output;     // [batch, heads, 1, d_head], written: the own value where
                      // nobody is seen
  int32_t* arrivals;  // [batch, heads]: 0 before and after
  int64_t batch;
  int64_t heads;
  int64_t d_head;  // a multiple of 8 up to 128
};

// Bytes of the workspace.
int64_t attend_next_workspace(const AttendNextArgs<float>& args);
int64_t attend_next_workspace(const AttendNextArgs<Bf16>& args);
void attend_next(const AttendNextArgs<float>& args, void* workspace,
                 void* stream);
void attend_next(const AttendNextArgs<Bf16>& args, void* workspace,
                 void* stream);

}  // namespace cuda

}  // namespace reformer::kernels
