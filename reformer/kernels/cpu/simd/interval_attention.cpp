// Interval attention, forward.
//
// A task owns a segment of consecutive places of one round of one head and
// marches along it, a macro tile of 64 queries at a time. Key and value rows
// are gathered once into a ring that the march pushes forward; queries whose
// intervals are longer than the ring stream their keys through it. Rounds run
// one after the other: each continues the running softmax (maximum, sum,
// weighted values) that the earlier ones left in `softmax` and `output`.
#include "reformer/kernels/interval_attention.h"

#include "reformer/base/parallel.h"
#include "reformer/kernels/cpu/simd/interval_tile.h"

namespace reformer::kernels::cpu::REFORMER_ISA {
namespace {

// The keys of the places that were needed last.
template <class T>
class KeyRing {
 public:
  KeyRing(int64_t width, int64_t rounds)
      : rows(ring_rows<T>(/*arrays=*/2, width)),
        keys(rows * width),
        values(rows * width),
        scales(rows),
        places(rows * rounds),
        held_(rows / kPanel) {
    std::fill_n(held_.data(), rows / kPanel, int64_t{-1});
  }

  // Makes sure that places [begin, end), which span no multiple of `rows`,
  // are held.
  void hold(const HeadRound<T>& head, int64_t begin, int64_t end) {
    for (int64_t panel = begin / kPanel; panel * kPanel < end; ++panel) {
      int64_t& held = held_[panel % (rows / kPanel)];
      if (held == panel) continue;
      held = panel;
      gather(head, panel * kPanel);
    }
  }

  const int64_t rows;
  Scratch<T> keys;          // [rows / 16] panels of [width, 16]
  Scratch<T> values;        // [rows, width]
  Scratch<T> scales;        // [rows]: of each key's scores
  Scratch<int32_t> places;  // [rows, rounds]: in the rounds before this one

 private:
  void gather(const HeadRound<T>& head, int64_t first_place) {
    const int64_t slot = first_place % rows;
    const T* key_rows[kPanel];
    for (int64_t r = 0; r < kPanel; ++r) {
      const bool exists = first_place + r < head.length;
      const int64_t j = exists ? head.order[first_place + r] : 0;
      const bool real = exists && !head.is_padded(j);
      key_rows[r] = real ? head.k + j * head.k_stride : kZeroRow<T>;
      copy_row(real ? head.value(j) : kZeroRow<T>, head.d, head.width,
               &values[(slot + r) * head.width]);
      for (int64_t e = 0; e < head.round; ++e) {
        places[(slot + r) * head.rounds + e] = head.place[j * head.rounds + e];
      }
    }
    T* panel = &keys[slot * head.width];
    pack_panel(key_rows, head.d, head.width, panel);
    if (head.shared) {
      inverse_norms(panel, head.d, &scales[slot]);
    } else {
      std::fill_n(&scales[slot], kPanel, T(1 / std::sqrt(double(head.d))));
    }
  }

  Scratch<int64_t> held_;  // the panel in each slot
};

// 16 queries and their running softmax.
template <class T>
struct QueryTile {
  QueryTile(int64_t width, int64_t rounds)
      : intervals(rounds), panel(kPanel * width), output(kPanel * width) {}

  TileIntervals<T> intervals;
  Scratch<T> panel;   // [width, 16]: the queries
  Scratch<T> output;  // [16, width]: the weighted values
  alignas(64) T max[kPanel];
  alignas(64) T sum[kPanel];
};

// One task.
template <class T>
class Segment {
 public:
  Segment(const IntervalAttentionArgs<T>& args, int64_t batch, int64_t head,
          int64_t round)
      : head_(args, batch, head, round),
        output_(args.output.head(batch, head)),
        output_stride_(args.output.row_stride),
        lse_(args.lse + (batch * args.heads + head) * args.length),
        softmax_(args.softmax + (batch * args.heads + head) * args.length * 2),
        ring_(head_.width, head_.rounds),
        scores_(ring_.rows * kPanel),
        tiles_{{head_.width, head_.rounds},
               {head_.width, head_.rounds},
               {head_.width, head_.rounds},
               {head_.width, head_.rounds}} {}

  void run(int64_t begin, int64_t end) {
    for (int64_t place = begin; place < end; place += kMacroRows) {
      run_macro_tile(place);
    }
  }

 private:
  void run_macro_tile(int64_t first_place) {
    int64_t begin = head_.length;
    int64_t end = 0;
    for (int64_t t = 0; t < kMacroTiles; ++t) {
      load_tile(tiles_[t], first_place + t * kPanel);
      begin = std::min(begin, tiles_[t].intervals.begin);
      end = std::max(end, tiles_[t].intervals.end);
    }
    next_row_ = std::min(first_place + kMacroRows, head_.length);
    next_rows_end_ = std::min(next_row_ + kMacroRows, head_.length);
    for_each_piece(begin, end, ring_.rows, [&](int64_t from, int64_t to) {
      ring_.hold(head_, from, to);
      for (auto& tile : tiles_) attend(tile, from, to);
    });
    while (next_row_ < next_rows_end_) prefetch_next_rows();
    for (auto& tile : tiles_) finish(tile);
  }

  void load_tile(QueryTile<T>& tile, int64_t first_place) {
    tile.intervals.read(head_, first_place);
    if (!tile.intervals.empty()) load_queries(tile, first_place);
    for (int lane = 0; lane < kPanel; ++lane) {
      const int64_t i = tile.intervals.position[lane];
      T* output = &tile.output[lane * head_.width];
      if (head_.round == 0 || i < 0) {
        tile.max[lane] = kMinusInfinity<T>;
        tile.sum[lane] = 0;
        zero_row(head_.width, output);
      } else {
        tile.max[lane] = softmax_[2 * i];
        tile.sum[lane] = softmax_[2 * i + 1];
        copy_row(output_ + i * output_stride_, head_.d, head_.width, output);
      }
    }
  }

  void load_queries(QueryTile<T>& tile, int64_t first_place) {
    const int64_t size = kPanel * head_.width;
    if (head_.shared) {  // the same vectors are in the ring, as keys
      ring_.hold(head_, first_place, first_place + kPanel);
      const int64_t slot = first_place % ring_.rows;
      copy_row(&ring_.keys[slot * head_.width], size, size, tile.panel.data());
      return;
    }
    const T* rows[kPanel];
    for (int lane = 0; lane < kPanel; ++lane) {
      rows[lane] =
          tile.intervals.active[lane]
              ? head_.q + tile.intervals.position[lane] * head_.q_stride
              : kZeroRow<T>;
    }
    pack_panel(rows, head_.d, head_.width, tile.panel.data());
  }

  // Two of the rows that the macro tile after this one will gather. A few at
  // a time, between the matmuls: the core can wait for only so many at once.
  [[gnu::always_inline]] void prefetch_next_rows() {
    const int64_t end = std::min(next_row_ + 2, next_rows_end_);
    for (; next_row_ < end; ++next_row_) {
      const int64_t i = head_.order[next_row_];
      prefetch_row(head_.k + i * head_.k_stride, head_.d);
      prefetch_row(head_.value(i), head_.d);
      if (!head_.shared) prefetch_row(head_.q + i * head_.q_stride, head_.d);
      prefetch_row(output_ + i * output_stride_, head_.d);
      prefetch(head_.interval + i * head_.rounds * 2);
      prefetch(softmax_ + 2 * i);
      prefetch(lse_ + i);
      if (head_.round == 0) continue;
      prefetch(head_.place + i * head_.rounds);
    }
  }

  // One step of the running softmax, over the keys at places [from, to).
  void attend(QueryTile<T>& tile, int64_t from, int64_t to) {
    const KeyRange keys = keys_of(tile.intervals, from, to);
    if (keys.from >= keys.to) return;
    const int64_t slot = keys.from % ring_.rows;
    const int64_t n = keys.to - keys.from;
    score_panels(
        ring_.keys.data(), head_.width, tile.panel.data(), head_.d, slot,
        slot + n, scores_.data(), [&]() __attribute__((always_inline)) {
          prefetch_next_rows();
        });
    mask_and_weigh(tile, keys.from, n);
    for (int group = 0; group < kPanel / 4; ++group) {
      const int64_t begin =
          std::max(keys.from, tile.intervals.group_begin[group]);
      const int64_t end = std::min(keys.to, tile.intervals.group_end[group]);
      if (begin >= end) continue;
      prefetch_next_rows();
      const int64_t skip = begin - keys.from;
      add_rows_to_queries(&tile.output[group * 4 * head_.width],
                          &scores_[skip * kPanel + group * 4],
                          &ring_.values[(slot + skip) * head_.width],
                          head_.width, end - begin);
    }
  }

  // Turns the scores of `n` keys from place `from` into weights relative to
  // the new maximum, and brings what was summed before to the same maximum.
  void mask_and_weigh(QueryTile<T>& tile, int64_t from, int64_t n) {
    const int64_t slot = from % ring_.rows;
    const bool exclude_self = head_.shared && tile.intervals.holds_self;
    alignas(64) T correction[kPanel];
    for (int v = 0; v < kPanelVectors<T>; ++v) {
      const int at = v * kLanes<T>;
      T* scores = scores_.data() + at;
      const Vector<T> old_max = load(tile.max + at);
      Vector<T> max = old_max;
      for (int64_t j = 0; j < n; ++j) {
        const Vector<T> score = mask_scores<T>(
            load(scores + j * kPanel) * ring_.scales[slot + j], tile.intervals,
            v, Index<T>(from + j), head_.round,
            &ring_.places[(slot + j) * head_.rounds], exclude_self);
        max = score > max ? score : max;
        store(scores + j * kPanel, score);
      }
      // A query that has met nobody yet has maximum -inf: weigh against 0.
      const Vector<T> base = max == kMinusInfinity<T> ? Vector<T>{} : max;
      const Vector<T> factor = exp_of<T>(old_max - base);
      Vector<T> sum = load(tile.sum + at) * factor;
      for (int64_t begin = 0; begin < n; begin += kRun) {
        Vector<T> run = {};
        for (int64_t j = begin; j < std::min(begin + kRun, n); ++j) {
          const Vector<T> weight = exp_of<T>(load(scores + j * kPanel) - base);
          run += weight;
          store(scores + j * kPanel, weight);
        }
        sum += run;
      }
      store(tile.max + at, max);
      store(tile.sum + at, sum);
      store(correction + at, factor);
    }
    for (int lane = 0; lane < kPanel; ++lane) {
      if (correction[lane] == T(1)) continue;
      T* output = &tile.output[lane * head_.width];
      scale_row(output, head_.width, correction[lane], output);
    }
  }

  void finish(QueryTile<T>& tile) {
    const bool last = head_.round + 1 == head_.rounds;
    for (int lane = 0; lane < kPanel; ++lane) {
      const int64_t i = tile.intervals.position[lane];
      if (i < 0) continue;
      const T* row = &tile.output[lane * head_.width];
      const T sum = tile.sum[lane];
      softmax_[2 * i] = tile.max[lane];
      softmax_[2 * i + 1] = sum;
      if (last && sum != T(0)) {  // also when it is NaN
        scale_row(row, head_.width, T(1) / sum,
                  &tile.output[lane * head_.width]);
        lse_[i] = tile.max[lane] + std::log(sum);
      } else if (last) {
        lse_[i] = kMinusInfinity<T>;
        // Nobody to attend to but itself. Padded rows stay 0.
        if (!head_.is_padded(i)) row = head_.v + i * head_.v_stride;
      }
      copy_row(row, head_.d, head_.d, output_ + i * output_stride_);
    }
  }

  const HeadRound<T> head_;
  T* output_;
  int64_t output_stride_;
  T* lse_;                // of the last round only
  T* softmax_;            // [length, 2]: the running maximum and sum
  int64_t next_row_ = 0;  // to prefetch
  int64_t next_rows_end_ = 0;
  KeyRing<T> ring_;
  Scratch<T> scores_;  // [ring rows, 16]
  QueryTile<T> tiles_[kMacroTiles];
};

}  // namespace

template <class T>
void interval_attention(const IntervalAttentionArgs<T>& args) {
  const int64_t n_heads = args.batch * args.heads;
  const int64_t segments = (args.length + kSegmentRows - 1) / kSegmentRows;
  for_each_head_group(n_heads, segments, [&](int64_t first, int64_t heads) {
    for (int64_t round = 0; round < args.rounds.rounds; ++round) {
      parallel_tasks(heads * segments, [&](int64_t task) {
        const int64_t head = first + task / segments;
        const int64_t begin = task % segments * kSegmentRows;
        const int64_t end = std::min(begin + kSegmentRows, args.length);
        Segment<T>(args, head / args.heads, head % args.heads, round)
            .run(begin, end);
      });
    }
  });
}

template void interval_attention(const IntervalAttentionArgs<float>&);
#ifndef __AVX2__  // float64 runs on the plain kernel alone
template void interval_attention(const IntervalAttentionArgs<double>&);
#endif

}  // namespace reformer::kernels::cpu::REFORMER_ISA
