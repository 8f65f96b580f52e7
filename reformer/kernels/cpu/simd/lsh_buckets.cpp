// The hash of 16 vectors at a time: the matmul with the rotations is the same
// small matmul as the attention's scores, with the columns as keys, so every
// argmax is a vertical comparison of the 16 lanes. A vector by itself, as
// generating needs it, is hashed without packing anything, to the same bits.
#include "reformer/kernels/lsh_buckets.h"

#include "reformer/base/parallel.h"
#include "reformer/kernels/cpu/simd/interval_tile.h"

namespace reformer::kernels::cpu::REFORMER_ISA {
namespace {

constexpr int64_t kHashRows = 1024;  // of one task

// Argmax of [r; -r] over `half` columns of [columns, 16], a lane a vector.
// [r; -r] is never built: its largest entry is either max(r) or -min(r). Ties
// go to the first of equals, and so to the positive half.
template <class T>
IndexVector<T> argmax_of_signed(const T* columns, int64_t half) {
  Vector<T> max = load(columns);
  Vector<T> min = max;
  IndexVector<T> at_max = {};
  IndexVector<T> at_min = {};
  for (int64_t j = 1; j < half; ++j) {
    const Vector<T> r = load(columns + j * kPanel);
    const IndexVector<T> here = Index<T>(j) - IndexVector<T>{};
    at_max = r > max ? here : at_max;
    max = r > max ? r : max;
    at_min = r < min ? here : at_min;
    min = r < min ? r : min;
  }
  return max >= -min ? at_max : at_min + Index<T>(half);
}

// The rotations of one head, as panels of columns [.., d, 16]; the columns of
// every round begin a new panel.
template <class T>
void pack_rotations(const LshBucketsArgs<T>& args, int64_t head, int64_t width,
                    int64_t panels_per_round, T* packed) {
  std::fill_n(packed, args.rounds * panels_per_round * kPanel * width, T(0));
  for (int64_t round = 0; round < args.rounds; ++round) {
    const float* from = args.rotations + (head * args.rounds + round) *
                                             args.d_head * args.columns;
    for (int64_t j = 0; j < args.columns; ++j) {
      T* panel =
          packed + (round * panels_per_round + j / kPanel) * kPanel * width;
      for (int64_t c = 0; c < args.d_head; ++c) {
        panel[c * kPanel + j % kPanel] = from[c * args.columns + j];
      }
    }
  }
}

// Mixed radix, the first factor most significant.
template <class T>
void write_buckets(const LshBucketsArgs<T>& args, const T* columns, int64_t n,
                   uint16_t* buckets) {
  for (int v = 0; v < kPanelVectors<T>; ++v) {
    IndexVector<T> bucket = {};
    const T* at = columns + v * kLanes<T>;
    for (int64_t f = 0; f < args.n_factors; ++f) {
      const int64_t half = args.factors[f] / 2;
      bucket = bucket * Index<T>(args.factors[f]) + argmax_of_signed(at, half);
      at += half * kPanel;
    }
    for (int lane = 0; lane < kLanes<T> && v * kLanes<T> + lane < n; ++lane) {
      buckets[v * kLanes<T> + lane] = static_cast<uint16_t>(bucket[lane]);
    }
  }
}

// Up to 1024 consecutive vectors of one head, in all rounds.
template <class T>
void hash_rows(const LshBucketsArgs<T>& args, const T* vectors,
               const T* rotations, int64_t panels_per_round, int64_t begin,
               int64_t end, uint16_t* buckets) {
  const int64_t width = padded<T>(args.d_head);
  const int64_t columns =
      (args.columns + kKeyGroup - 1) / kKeyGroup * kKeyGroup;
  const int64_t stride = args.vectors.row_stride;
  Scratch<T> panel(kPanel * width);
  Scratch<T> rotated(panels_per_round * kPanel * kPanel);  // [columns, 16]
  for (int64_t i = begin; i < end; i += kPanel) {
    const int64_t n = std::min<int64_t>(kPanel, end - i);
    const T* rows[kPanel];
    for (int64_t r = 0; r < kPanel; ++r) {
      rows[r] = r < n ? vectors + (i + r) * stride : kZeroRow<T>;
      if (i + kPanel + r < end) prefetch_row(rows[r] + kPanel * stride, width);
    }
    pack_panel(rows, args.d_head, width, panel.data());
    for (int64_t round = 0; round < args.rounds; ++round) {
      score_panels(rotations + round * panels_per_round * kPanel * width, width,
                   panel.data(), args.d_head, 0, columns, rotated.data(),
                   [] {});
      write_buckets(args, rotated.data(), n, buckets + round * args.length + i);
    }
  }
}

// The same as argmax_of_signed, of one vector.
template <class T>
int64_t argmax_of_signed_row(const T* columns, int64_t half) {
  int64_t at_max = 0;
  int64_t at_min = 0;
  for (int64_t j = 1; j < half; ++j) {
    if (columns[j] > columns[at_max]) at_max = j;
    if (columns[j] < columns[at_min]) at_min = j;
  }
  return columns[at_max] >= -columns[at_min] ? at_max : at_min + half;
}

// One vector in one round. Sums over its elements in runs, in the order of
// score_keys, which makes them the same elements. `rotated`: [2, columns].
template <class T>
uint16_t bucket_of_row(const LshBucketsArgs<T>& args, const T* vector,
                       const float* rotations, T* rotated) {
  T* run = rotated + args.columns;
  const int64_t length = run_of(args.d_head);
  for (int64_t begin = 0; begin < args.d_head; begin += length) {
    std::fill_n(run, args.columns, T(0));
    for (int64_t c = begin; c < std::min(begin + length, args.d_head); ++c) {
      const T x = vector[c];
      const float* row = rotations + c * args.columns;
      for (int64_t j = 0; j < args.columns; ++j) run[j] += x * T(row[j]);
    }
    for (int64_t j = 0; j < args.columns; ++j) {
      rotated[j] = begin == 0 ? run[j] : rotated[j] + run[j];
    }
  }
  int64_t bucket = 0;
  for (int64_t f = 0; f < args.n_factors; ++f) {
    const int64_t half = args.factors[f] / 2;
    bucket = bucket * args.factors[f] + argmax_of_signed_row(rotated, half);
    rotated += half;
  }
  return static_cast<uint16_t>(bucket);
}

// One vector of every (batch, head).
template <class T>
void hash_single_rows(const LshBucketsArgs<T>& args) {
  constexpr int64_t kWorthwhile = 64;  // vectors
  const int64_t heads = args.batch * args.heads;
  parallel_tasks_if(heads >= kWorthwhile, heads, [&](int64_t task) {
    const int64_t head = task % args.heads;
    const T* vector = args.vectors.head(task / args.heads, head);
    Scratch<T> rotated(2 * args.columns);
    for (int64_t round = 0; round < args.rounds; ++round) {
      const float* rotations = args.rotations + (head * args.rounds + round) *
                                                    args.d_head * args.columns;
      args.buckets[task * args.rounds + round] =
          bucket_of_row(args, vector, rotations, rotated.data());
    }
  });
}

}  // namespace

template <class T>
void lsh_buckets(const LshBucketsArgs<T>& args) {
  if (args.length == 1) return hash_single_rows(args);
  const int64_t width = padded<T>(args.d_head);
  const int64_t panels = (args.columns + kPanel - 1) / kPanel;
  const int64_t rotation_size = args.rounds * panels * kPanel * width;
  Scratch<T> rotations(args.heads * rotation_size);
  parallel_tasks(args.heads, [&](int64_t head) {
    pack_rotations(args, head, width, panels, &rotations[head * rotation_size]);
  });

  const int64_t blocks = (args.length + kHashRows - 1) / kHashRows;
  parallel_tasks(args.batch * args.heads * blocks, [&](int64_t task) {
    const int64_t batch = task / blocks / args.heads;
    const int64_t head = task / blocks % args.heads;
    const int64_t begin = task % blocks * kHashRows;
    hash_rows(args, args.vectors.head(batch, head),
              &rotations[head * rotation_size], panels, begin,
              std::min(begin + kHashRows, args.length),
              args.buckets + task / blocks * args.rounds * args.length);
  });
}

template void lsh_buckets(const LshBucketsArgs<float>&);
#ifndef __AVX2__  // float64 runs on the plain kernel alone
template void lsh_buckets(const LshBucketsArgs<double>&);
#endif

}  // namespace reformer::kernels::cpu::REFORMER_ISA
