// The three small matmuls that all attention here is made of.
//
// A panel holds 16 vectors, element by element: [d][16]. Queries take part as
// the lanes of a panel, so that everything per query (masks, maxima, sums) is
// a vertical operation; keys are broadcast one element at a time.
#pragma once

#include <algorithm>

#include "reformer/kernels/cpu/simd/vector.h"
#include "reformer/kernels/interval_attention.h"

namespace reformer::kernels::cpu::REFORMER_ISA {

inline constexpr int kPanel = kTileRows;
static_assert(kPanel == 16);

// Vectors of one row of a panel.
template <class T>
inline constexpr int kPanelVectors = kPanel / kLanes<T>;

// Rows are padded with zeros to whole vectors.
template <class T>
inline int64_t padded(int64_t d) {
  return (d + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

// panel[c][r] = rows[r][c] for 16 rows of d elements anywhere in memory; zeros
// fill the panel up to `width` (padded) elements.
template <class T>
inline void pack_panel(const T* const (&rows)[kPanel], int64_t d, int64_t width,
                       T* panel) {
  for (int64_t c = 0; c < width; c += kLanes<T>) {
    const int64_t n = std::min<int64_t>(kLanes<T>, d - c);
    for (int first = 0; first < kPanel; first += kLanes<T>) {
      Vector<T> block[kLanes<T>];
      if (n == kLanes<T>) {
        for (int r = 0; r < kLanes<T>; ++r)
          block[r] = load(rows[first + r] + c);
      } else {
        for (int r = 0; r < kLanes<T>; ++r) {
          block[r] = Vector<T>{};
          for (int64_t e = 0; e < n; ++e) block[r][e] = rows[first + r][c + e];
        }
      }
      transpose<T>(block);
      for (int r = 0; r < kLanes<T>; ++r) {
        store(panel + (c + r) * kPanel + first, block[r]);
      }
    }
  }
}

// Elements that are summed one after the other; the sums of such runs are then
// added. Long runs would round several times worse than a library does.
inline constexpr int64_t kRun = 64;

// Of a matmul's d elements: up to 64 in one run, the cheapest, else shorter
// ones, because errors grow with d.
inline int64_t run_of(int64_t d) { return d <= kRun ? kRun : kRun / 2; }

// scores[k][i] = sum_c keys[c][k] * queries[c][i] for Keys consecutive keys of
// a panel and its 16 queries, over a run of elements: Keys * kPanelVectors
// accumulators. Adds to what an earlier run left.
template <class T, int Keys>
inline void score_run(const T* keys, const T* queries, int64_t begin,
                      int64_t end, T* scores) {
  Vector<T> sum[Keys][kPanelVectors<T>] = {};
  for (int64_t c = begin; c < end; ++c) {
    Vector<T> query[kPanelVectors<T>];
    for (int v = 0; v < kPanelVectors<T>; ++v) {
      query[v] = load(queries + c * kPanel + v * kLanes<T>);
    }
    for (int k = 0; k < Keys; ++k) {
      const T key = keys[c * kPanel + k];
      for (int v = 0; v < kPanelVectors<T>; ++v) sum[k][v] += query[v] * key;
    }
  }
  for (int k = 0; k < Keys; ++k) {
    for (int v = 0; v < kPanelVectors<T>; ++v) {
      T* out = scores + k * kPanel + v * kLanes<T>;
      store(out, begin == 0 ? sum[k][v] : load(out) + sum[k][v]);
    }
  }
}

template <class T, int Keys>
inline void score_keys(const T* keys, const T* queries, int64_t d, T* scores) {
  const int64_t run = run_of(d);
  for (int64_t begin = 0; begin < d; begin += run) {
    score_run<T, Keys>(keys, queries, begin, std::min(begin + run, d), scores);
  }
}

// Keys that score_keys takes at once so that the accumulators stay in
// registers: 16 of 32 with AVX-512, 8 of 16 otherwise.
template <class T>
inline constexpr int kScoreKeys = kVectorBytes == 64
                                      ? 16
                                      : std::max(1, 8 / kPanelVectors<T>);

// Keys are computed in groups of four, from a multiple of four.
inline constexpr int64_t kKeyGroup = 4;

// The scores of keys [begin, end) of a row of panels [.., width, 16] against
// one panel of queries; begin and end are multiples of kKeyGroup. Calls
// meanwhile() between small matmuls.
template <class T, class Meanwhile>
inline void score_panels(const T* panels, int64_t width, const T* queries,
                         int64_t d, int64_t begin, int64_t end, T* scores,
                         const Meanwhile& meanwhile) {
  for (int64_t k = begin; k < end;) {
    meanwhile();
    const int64_t in_panel = k % kPanel;
    const T* keys = panels + (k - in_panel) * width + in_panel;
    T* out = scores + (k - begin) * kPanel;
    const int64_t left = std::min(kPanel - in_panel, end - k);
    if (kScoreKeys<T> >= 16 && left >= 16) {
      score_keys<T, std::min(kScoreKeys<T>, 16)>(keys, queries, d, out);
      k += 16;
    } else if (kScoreKeys<T> >= 8 && left >= 8) {
      score_keys<T, std::min(kScoreKeys<T>, 8)>(keys, queries, d, out);
      k += 8;
    } else {
      constexpr int kStep = std::min(kScoreKeys<T>, int(kKeyGroup));
      for (int64_t at = 0; at < kKeyGroup; at += kStep) {
        score_keys<T, kStep>(keys + at, queries, d, out + at * kPanel);
      }
      k += kKeyGroup;
    }
  }
}

// c[m][:] += sum_k a[m * AStepM + k * AStepK] * b[k][:] for four rows m and
// Vectors vectors of their columns, over a run of k.
template <class T, int Vectors, int AStepM, int AStepK>
inline void accumulate_block(T* c, const T* a, const T* b, int64_t width,
                             int64_t depth) {
  Vector<T> sum[4][Vectors] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vector<T> row[Vectors];
    for (int v = 0; v < Vectors; ++v)
      row[v] = load(b + k * width + v * kLanes<T>);
    for (int m = 0; m < 4; ++m) {
      const T factor = a[m * AStepM + k * AStepK];
      for (int v = 0; v < Vectors; ++v) sum[m][v] += row[v] * factor;
    }
  }
  for (int m = 0; m < 4; ++m) {
    for (int v = 0; v < Vectors; ++v) {
      T* out = c + m * width + v * kLanes<T>;
      store(out, load(out) + sum[m][v]);
    }
  }
}

inline constexpr int kMaxVectors = kVectorBytes == 64 ? 4 : 2;

// The same for rows of `width` elements, a multiple of the lanes.
template <class T, int AStepM, int AStepK>
inline void accumulate(T* c, const T* a, const T* b, int64_t width,
                       int64_t depth) {
  int64_t at = 0;
  const auto block = [&]<int Vectors>() {
    for (int64_t k = 0; k < depth; k += kRun) {
      accumulate_block<T, Vectors, AStepM, AStepK>(c + at, a + k * AStepK,
                                                   b + k * width + at, width,
                                                   std::min(kRun, depth - k));
    }
    at += Vectors * kLanes<T>;
  };
  while (width - at >= kMaxVectors * kLanes<T>) {
    block.template operator()<kMaxVectors>();
  }
  if (width - at >= 2 * kLanes<T>) block.template operator()<2>();
  if (width - at >= kLanes<T>) block.template operator()<1>();
}

// Four queries: out[i][:] += sum_k scores[k][i] * rows[k][:].
template <class T>
inline void add_rows_to_queries(T* out, const T* scores, const T* rows,
                                int64_t width, int64_t n_keys) {
  accumulate<T, 1, kPanel>(out, scores, rows, width, n_keys);
}

// Four keys: out[k][:] += sum_i scores[k][i] * rows[i][:], over 16 queries.
template <class T>
inline void add_rows_to_keys(T* out, const T* scores, const T* rows,
                             int64_t width) {
  accumulate<T, kPanel, 1>(out, scores, rows, width, kPanel);
}

}  // namespace reformer::kernels::cpu::REFORMER_ISA
