// Attention of one new position of a hypothesis, one (row, head) at a time: its
// keys lie anywhere, so that it first collects where, then takes as many keys
// at a time as a vector has lanes.
#include "reformer/kernels/beam_attention.h"

#include <algorithm>

#include "reformer/base/parallel.h"
#include "reformer/kernels/cpu/simd/interval_tile.h"

namespace reformer::kernels::cpu::REFORMER_ISA {
namespace {

// What a thread needs of memory for one (row, head) after the other.
template <class T>
struct BeamScratch {
  explicit BeamScratch(int64_t positions)
      : keys(padded<T>(positions)),
        values(padded<T>(positions)),
        scores(padded<T>(positions)) {}

  Scratch<const T*> keys;
  Scratch<const T*> values;
  Scratch<T> scores;
};

template <class T>
class BeamQuery {
 public:
  BeamQuery(const BeamAttentionArgs<T>& args, int64_t row, int64_t head,
            const BeamScratch<T>& scratch)
      : args_(args),
        row_(row),
        head_(head),
        end_(args.ends ? args.ends[row] : args.end),
        seen_(args.seen ? args.seen + (row * args.heads + head) * args.end
                        : nullptr),
        keys_(scratch.keys),
        values_(scratch.values),
        scores_(scratch.scores) {}

  void attend() {
    T* output = args_.output.head(row_, head_);
    collect();
    if (n_ == 0) {
      const T* own = beam_value(args_, args_.own, row_, head_);
      return copy_row(own, args_.d_head, args_.d_head, output);
    }
    score();
    add_values(T(1) / weigh(), output);
  }

 private:
  void collect() {
    const int64_t later = head_ < args_.successor_heads ? 1 : 0;
    for (int64_t p = args_.begin; p < end_; ++p) {
      if (seen_ && seen_[p] == 0) continue;
      keys_[n_] = args_.keys.at(p, args_.slots.of(p, row_), head_);
      values_[n_++] = beam_value(args_, p + later, row_, head_);
    }
    // Whole vectors of keys; the scores of these are not used.
    for (int64_t i = n_; i < padded<T>(n_); ++i) keys_[i] = keys_[0];
  }

  void score() {
    const T* q = args_.q.head(row_, head_);
    const int64_t whole = args_.d_head / kLanes<T> * kLanes<T>;
    for (int64_t first = 0; first < n_; first += kLanes<T>) {
      Vector<T> sums[kLanes<T>] = {};
      for (int64_t c = 0; c < whole; c += kLanes<T>) {
        const Vector<T> query = load(q + c);
        for (int i = 0; i < kLanes<T>; ++i) {
          sums[i] += query * load(keys_[first + i] + c);
        }
      }
      transpose<T>(sums);
      for (int half = kLanes<T> / 2; half >= 1; half /= 2) {
        for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
      }
      store(&scores_[first], sums[0]);
      for (int64_t c = whole; c < args_.d_head; ++c) {
        for (int i = 0; i < kLanes<T>; ++i) {
          scores_[first + i] += q[c] * keys_[first + i][c];
        }
      }
    }
  }

  // Turns scores into weights, relative to the largest; returns their sum.
  T weigh() {
    const int64_t width = padded<T>(n_);
    std::fill(&scores_[n_], &scores_[width], kMinusInfinity<T>);
    const T max = *std::max_element(&scores_[0], &scores_[n_]);
    const T scale = T(args_.scale);
    Vector<T> sums = {};
    for (int64_t i = 0; i < width; i += kLanes<T>) {
      const Vector<T> weights = exp_of<T>((load(&scores_[i]) - max) * scale);
      sums += weights;
      store(&scores_[i], weights);
    }
    return sum_of<T>(sums);
  }

  template <int Vectors>
  void add_columns(int64_t c, T factor, T* output) {
    Vector<T> sums[Vectors] = {};
    for (int64_t i = 0; i < n_; ++i) {
      for (int v = 0; v < Vectors; ++v) {
        sums[v] += load(values_[i] + c + v * kLanes<T>) * scores_[i];
      }
    }
    for (int v = 0; v < Vectors; ++v) {
      store(output + c + v * kLanes<T>, sums[v] * factor);
    }
  }

  void add_values(T factor, T* output) {
    int64_t c = 0;
    for (; c + 4 * kLanes<T> <= args_.d_head; c += 4 * kLanes<T>) {
      add_columns<4>(c, factor, output);
    }
    for (; c + kLanes<T> <= args_.d_head; c += kLanes<T>) {
      add_columns<1>(c, factor, output);
    }
    for (; c < args_.d_head; ++c) {
      T sum = 0;
      for (int64_t i = 0; i < n_; ++i) sum += values_[i][c] * scores_[i];
      output[c] = sum * factor;
    }
  }

  const BeamAttentionArgs<T>& args_;
  const int64_t row_;
  const int64_t head_;
  const int64_t end_;
  const uint8_t* seen_;
  int64_t n_ = 0;  // positions
  const Scratch<const T*>& keys_;
  const Scratch<const T*>& values_;
  const Scratch<T>& scores_;
};

}  // namespace

template <class T>
void beam_attention(const BeamAttentionArgs<T>& args) {
  constexpr int64_t kWorthwhile = 4096;  // positions, when all heads see `end`
  const int64_t tasks = args.rows * args.heads;
  const int64_t positions = args.end - args.begin;
  // A task is a few heads of a row: waking a thread for one costs more than it.
  constexpr int64_t kTogether = 16;
  parallel_tasks_if(
      tasks * positions >= kWorthwhile, (tasks + kTogether - 1) / kTogether,
      [&](int64_t group) {
        const BeamScratch<T> scratch(positions);
        const int64_t last = std::min(tasks, (group + 1) * kTogether);
        for (int64_t task = group * kTogether; task < last; ++task) {
          BeamQuery<T>(args, task / args.heads, task % args.heads, scratch)
              .attend();
        }
      });
}

template void beam_attention(const BeamAttentionArgs<float>&);
#ifndef __AVX2__  // float64 runs on the plain kernel alone
template void beam_attention(const BeamAttentionArgs<double>&);
#endif

}  // namespace reformer::kernels::cpu::REFORMER_ISA
