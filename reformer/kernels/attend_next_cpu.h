// The attention of one new position of each text: its softmax over the
// positions that it sees, gathered from pages (docs/numerics.md).
#pragma once

#include <cstdint>

#include "reformer/kernels/key_value_pages.h"

namespace reformer::kernels {

struct PositionRange {
  int64_t begin = 0;
  int64_t end = 0;
};

struct PositionList {
  const int32_t* data = nullptr;
  int64_t size = 0;
};

template <class T>
struct AttendNextCpuArgs {
  Rows<const T> q;              // [batch, heads, 1, d_head]
  PageTable<T> pages;           // of every row
  const int64_t* position;      // [batch]: the query's own, in the pages too
  const PositionRange* ranges;  // [batch]: what all heads see, and
  const PositionList* lists;    // [batch, heads, n_lists]: what each sees
  int64_t n_lists;              //   besides; a position counts once
  double scale;                 // of the scores
  Rows<T> output;  // [batch, heads, 1, d_head], written: the query's own value
                   // where it sees nobody
  int64_t batch;
  int64_t heads;
  int64_t d_head;
};

namespace cpu {
void attend_next(const AttendNextCpuArgs<float>& args);
void attend_next(const AttendNextCpuArgs<double>& args);
}  // namespace cpu

}  // namespace reformer::kernels
