// Interval attention, backward.
//
// With the merged o and softmax of the forward pass every pair's weight is
// p_ij = exp(s_ij - z_i), whatever round found it, so each round adds its own
// pairs' share to the gradients and needs nothing from the others:
//   dv_j += p_ij do_i,   ds_ij = p_ij (do_i . v_j - delta_i),
//   dq_i += ds_ij k_j,   dk_j += ds_ij q_i,   delta_i = do_i . o_i,
// and for unit keys k = q / |q|:  dq_j += (dk_j - k_j (k_j . dk_j)) / |q_j|.
//
// A task marches along a segment as in the forward pass. The ring holds the
// gradients of its keys as well, and adds them to memory when a key leaves.
// Tasks that share keys never run at the same time (add_phases), which
// also fixes the order of the sums.
#include <cstdlib>
#include <iterator>
#include <vector>

#include "reformer/base/parallel.h"
#include "reformer/kernels/cpu/simd/interval_tile.h"
#include "reformer/kernels/interval_attention.h"

namespace reformer::kernels::cpu::REFORMER_ISA {
namespace {

// One (batch, head) of the gradients.
template <class T>
struct HeadGradients {
  HeadGradients(const IntervalAttentionGradArgs<T>& args, int64_t batch,
                int64_t head)
      : d_output(args.d_output.head(batch, head)),
        d_q(args.d_q.head(batch, head)),
        d_k(args.d_k.data ? args.d_k.head(batch, head) : d_q),
        d_v(args.d_v.head(batch, head)),
        softmax(args.forward.softmax +
                (batch * args.forward.heads + head) * args.forward.length * 2),
        d_output_stride(args.d_output.row_stride),
        d_q_stride(args.d_q.row_stride),
        d_k_stride(args.d_k.data ? args.d_k.row_stride : d_q_stride),
        d_v_stride(args.d_v.row_stride) {}

  const T* d_output;
  T* d_q;
  T* d_k;
  T* d_v;
  const T* softmax;  // [length, 2]: maximum and sum; 0 for a lone token
  int64_t d_output_stride;
  int64_t d_q_stride;
  int64_t d_k_stride;
  int64_t d_v_stride;
};

// The keys of the places that were needed last, and their gradients so far.
template <class T>
class GradRing {
 public:
  GradRing(const HeadRound<T>& head, const HeadGradients<T>& grads)
      : rows(ring_rows<T>(/*arrays=*/5, head.width)),
        keys(rows * head.width),
        key_panels(rows * head.width),
        value_panels(rows * head.width),
        d_keys(rows * head.width),
        d_values(rows * head.width),
        scales(rows),
        places(rows * head.rounds),
        head_(head),
        grads_(grads),
        held_(rows / kPanel) {
    std::fill_n(held_.data(), rows / kPanel, int64_t{-1});
  }

  // Makes sure that places [begin, end), which span no multiple of `rows`,
  // are held.
  void hold(int64_t begin, int64_t end) {
    for (int64_t panel = begin / kPanel; panel * kPanel < end; ++panel) {
      int64_t& held = held_[panel % (rows / kPanel)];
      if (held == panel) continue;
      if (held >= 0) release(held * kPanel);
      held = panel;
      gather(panel * kPanel);
    }
  }

  // Adds everything that is still here to memory, in the order of places.
  void release_all() {
    std::sort(held_.data(), held_.data() + rows / kPanel);
    for (int64_t slot = 0; slot < rows / kPanel; ++slot) {
      if (held_[slot] >= 0) release(held_[slot] * kPanel);
    }
  }

  const int64_t rows;
  Scratch<T> keys;          // [rows, width], not normalised
  Scratch<T> key_panels;    // [rows / 16] panels of [width, 16] of them
  Scratch<T> value_panels;  // likewise
  Scratch<T> d_keys;        // [rows, width], of the keys times their scales
  Scratch<T> d_values;      // [rows, width]
  Scratch<T> scales;        // [rows]: of each key's scores
  Scratch<int32_t> places;  // [rows, rounds]: in the rounds before this one

 private:
  void gather(int64_t first_place) {
    const int64_t width = head_.width;
    const int64_t slot = first_place % rows;
    const T* key_rows[kPanel];
    const T* value_rows[kPanel];
    for (int64_t r = 0; r < kPanel; ++r) {
      const bool exists = first_place + r < head_.length;
      const int64_t j = exists ? head_.order[first_place + r] : 0;
      const bool real = exists && !head_.is_padded(j);
      T* key = &keys[(slot + r) * width];
      copy_row(real ? head_.k + j * head_.k_stride : kZeroRow<T>, head_.d,
               width, key);
      key_rows[r] = key;
      value_rows[r] = real ? head_.value(j) : kZeroRow<T>;
      zero_row(width, &d_keys[(slot + r) * width]);
      zero_row(width, &d_values[(slot + r) * width]);
      for (int64_t e = 0; e < head_.round; ++e) {
        places[(slot + r) * head_.rounds + e] =
            head_.place[j * head_.rounds + e];
      }
    }
    T* key_panel = &key_panels[slot * width];
    pack_panel(key_rows, head_.d, width, key_panel);
    pack_panel(value_rows, head_.d, width, &value_panels[slot * width]);
    if (head_.shared) {
      inverse_norms(key_panel, head_.d, &scales[slot]);
    } else {
      std::fill_n(&scales[slot], kPanel, T(1 / std::sqrt(double(head_.d))));
    }
  }

  void release(int64_t first_place) {
    const int64_t end = std::min(first_place + kPanel, head_.length);
    for (int64_t s = first_place; s < end; ++s) {
      const int64_t j = head_.order[s];
      const int64_t row = s % rows;
      T* d_key = &d_keys[row * head_.width];
      if (head_.shared) {
        take_gradient_through_norm(&keys[row * head_.width], scales[row],
                                   d_key);
      }
      add_to_row(d_key, head_.d, grads_.d_k + j * grads_.d_k_stride);
      add_to_row(&d_values[row * head_.width], head_.d, d_value(j));
    }
  }

  T* d_value(int64_t j) {
    return grads_.d_v + head_.offered.gradient_row(static_cast<int32_t>(j)) *
                            grads_.d_v_stride;
  }

  // Of the unit key x / |x|, the part across x is what remains.
  void take_gradient_through_norm(const T* x, T inverse_norm, T* d_x) {
    const T along = dot(x, d_x, head_.width) * inverse_norm * inverse_norm;
    for (int64_t c = 0; c < head_.width; c += kLanes<T>) {
      store(d_x + c, load(d_x + c) - load(x + c) * along);
    }
  }

  const HeadRound<T>& head_;
  const HeadGradients<T>& grads_;
  Scratch<int64_t> held_;  // the panel in each slot
};

// 16 queries and the gradients of their outputs.
template <class T>
struct GradTile {
  GradTile(int64_t width, int64_t rounds)
      : intervals(rounds),
        queries(kPanel * width),
        query_panel(kPanel * width),
        d_outputs(kPanel * width),
        d_output_panel(kPanel * width),
        d_queries(kPanel * width) {}

  TileIntervals<T> intervals;
  Scratch<T> queries;         // [16, width]
  Scratch<T> query_panel;     // [width, 16]
  Scratch<T> d_outputs;       // [16, width]
  Scratch<T> d_output_panel;  // [width, 16]
  Scratch<T> d_queries;       // [16, width]
  alignas(64) T max[kPanel];
  alignas(64) T inverse_sum[kPanel];
  alignas(64) T delta[kPanel];
};

// The queries at some places and those of their keys at some places.
struct GradTask {
  int64_t head;  // of all heads of the batch
  int64_t query_begin;
  int64_t query_end;
  int64_t key_begin;
  int64_t key_end;
};

template <class T>
class GradSegment {
 public:
  GradSegment(const IntervalAttentionGradArgs<T>& args, const T* delta,
              int64_t batch, int64_t head, int64_t round)
      : head_(args.forward, batch, head, round),
        grads_(args, batch, head),
        delta_(delta + (batch * args.forward.heads + head) * head_.length),
        ring_(head_, grads_),
        weights_(ring_.rows * kPanel),
        d_scores_(ring_.rows * kPanel),
        tiles_{{head_.width, head_.rounds},
               {head_.width, head_.rounds},
               {head_.width, head_.rounds},
               {head_.width, head_.rounds}} {}

  void run(const GradTask& task) {
    for (int64_t place = task.query_begin; place < task.query_end;
         place += kMacroRows) {
      run_macro_tile(place, task);
    }
    ring_.release_all();
  }

 private:
  void run_macro_tile(int64_t first_place, const GradTask& task) {
    int64_t begin = task.key_end;
    int64_t end = task.key_begin;
    for (int64_t t = 0; t < kMacroTiles; ++t) {
      load_tile(tiles_[t], first_place + t * kPanel);
      begin = std::min(begin, tiles_[t].intervals.begin);
      end = std::max(end, tiles_[t].intervals.end);
    }
    begin = std::max(begin, task.key_begin);
    end = std::min(end, task.key_end);
    next_row_ = std::min(first_place + kMacroRows, head_.length);
    next_rows_end_ = std::min(next_row_ + kMacroRows, head_.length);
    for_each_piece(begin, end, ring_.rows, [&](int64_t from, int64_t to) {
      ring_.hold(from, to);
      for (auto& tile : tiles_) attend(tile, from, to);
    });
    while (next_row_ < next_rows_end_) prefetch_next_rows();
    for (auto& tile : tiles_) finish(tile);
  }

  void load_tile(GradTile<T>& tile, int64_t first_place) {
    tile.intervals.read(head_, first_place);
    if (tile.intervals.empty()) return;
    load_queries(tile, first_place);
    const T* d_outputs[kPanel];
    for (int lane = 0; lane < kPanel; ++lane) {
      const bool active = tile.intervals.active[lane];
      const int64_t i = active ? tile.intervals.position[lane] : 0;
      const bool alone = !active || grads_.softmax[2 * i + 1] == T(0);
      tile.max[lane] = alone ? T(0) : grads_.softmax[2 * i];
      tile.inverse_sum[lane] = alone ? T(0) : 1 / grads_.softmax[2 * i + 1];
      tile.delta[lane] = active ? delta_[i] : T(0);
      T* d_output = &tile.d_outputs[lane * head_.width];
      copy_row(
          active ? grads_.d_output + i * grads_.d_output_stride : kZeroRow<T>,
          head_.d, head_.width, d_output);
      d_outputs[lane] = d_output;
      zero_row(head_.width, &tile.d_queries[lane * head_.width]);
    }
    pack_panel(d_outputs, head_.d, head_.width, tile.d_output_panel.data());
  }

  void load_queries(GradTile<T>& tile, int64_t first_place) {
    const int64_t size = kPanel * head_.width;
    if (head_.shared) {  // the same vectors are in the ring, as keys
      ring_.hold(first_place, first_place + kPanel);
      const int64_t at = first_place % ring_.rows * head_.width;
      copy_row(&ring_.keys[at], size, size, tile.queries.data());
      copy_row(&ring_.key_panels[at], size, size, tile.query_panel.data());
      return;
    }
    const T* rows[kPanel];
    for (int lane = 0; lane < kPanel; ++lane) {
      T* query = &tile.queries[lane * head_.width];
      copy_row(tile.intervals.active[lane]
                   ? head_.q + tile.intervals.position[lane] * head_.q_stride
                   : kZeroRow<T>,
               head_.d, head_.width, query);
      rows[lane] = query;
    }
    pack_panel(rows, head_.d, head_.width, tile.query_panel.data());
  }

  // Two of the rows that the macro tile after this one will gather. A few at
  // a time, between the matmuls: the core can wait for only so many at once.
  [[gnu::always_inline]] void prefetch_next_rows() {
    const int64_t end = std::min(next_row_ + 2, next_rows_end_);
    for (; next_row_ < end; ++next_row_) {
      const int64_t i = head_.order[next_row_];
      prefetch_row(head_.k + i * head_.k_stride, head_.d);
      prefetch_row(head_.value(i), head_.d);
      prefetch_row(grads_.d_output + i * grads_.d_output_stride, head_.d);
      prefetch_row(grads_.d_k + i * grads_.d_k_stride, head_.d);
      prefetch_row(grads_.d_v + i * grads_.d_v_stride, head_.d);
      if (!head_.shared) {
        prefetch_row(head_.q + i * head_.q_stride, head_.d);
        prefetch_row(grads_.d_q + i * grads_.d_q_stride, head_.d);
      }
      prefetch(head_.interval + i * head_.rounds * 2);
      prefetch(grads_.softmax + 2 * i);
      prefetch(delta_ + i);
      if (head_.round > 0) prefetch(head_.place + i * head_.rounds);
    }
  }

  void attend(GradTile<T>& tile, int64_t from, int64_t to) {
    const KeyRange keys = keys_of(tile.intervals, from, to);
    if (keys.from >= keys.to) return;
    const int64_t width = head_.width;
    const int64_t slot = keys.from % ring_.rows;
    const int64_t n = keys.to - keys.from;
    score_panels(
        ring_.key_panels.data(), width, tile.query_panel.data(), head_.d, slot,
        slot + n, weights_.data(), [&]() __attribute__((always_inline)) {
          prefetch_next_rows();
        });
    score_panels(
        ring_.value_panels.data(), width, tile.d_output_panel.data(), head_.d,
        slot, slot + n, d_scores_.data(), [&]() __attribute__((always_inline)) {
          prefetch_next_rows();
        });
    weigh(tile, keys.from, n);
    for (int64_t j = 0; j < n; j += kKeyGroup) {
      add_rows_to_keys(&ring_.d_values[(slot + j) * width],
                       &weights_[j * kPanel], tile.d_outputs.data(), width);
      add_rows_to_keys(&ring_.d_keys[(slot + j) * width],
                       &d_scores_[j * kPanel], tile.queries.data(), width);
    }
    for (int group = 0; group < kPanel / 4; ++group) {
      const int64_t begin =
          std::max(keys.from, tile.intervals.group_begin[group]);
      const int64_t end = std::min(keys.to, tile.intervals.group_end[group]);
      if (begin >= end) continue;
      prefetch_next_rows();
      const int64_t skip = begin - keys.from;
      add_rows_to_queries(&tile.d_queries[group * 4 * width],
                          &d_scores_[skip * kPanel + group * 4],
                          &ring_.keys[(slot + skip) * width], width,
                          end - begin);
    }
  }

  // From q . k and do . v to the weights p and the gradients of q . k.
  void weigh(GradTile<T>& tile, int64_t from, int64_t n) {
    const int64_t slot = from % ring_.rows;
    const bool exclude_self = head_.shared && tile.intervals.holds_self;
    for (int v = 0; v < kPanelVectors<T>; ++v) {
      const int at = v * kLanes<T>;
      const Vector<T> max = load(tile.max + at);
      const Vector<T> inverse_sum = load(tile.inverse_sum + at);
      const Vector<T> delta = load(tile.delta + at);
      for (int64_t j = 0; j < n; ++j) {
        T* weights = &weights_[j * kPanel + at];
        T* d_scores = &d_scores_[j * kPanel + at];
        const T scale = ring_.scales[slot + j];
        const Vector<T> score = mask_scores<T>(
            load(weights) * scale, tile.intervals, v, Index<T>(from + j),
            head_.round, &ring_.places[(slot + j) * head_.rounds],
            exclude_self);
        const Vector<T> weight = exp_of<T>(score - max) * inverse_sum;
        const Vector<T> d_score = weight * (load(d_scores) - delta) * scale;
        store(weights, weight);
        // 0 * inf is NaN: a masked pair must not let a huge value through.
        store(d_scores, weight == T(0) ? Vector<T>{} : d_score);
      }
    }
  }

  void finish(GradTile<T>& tile) {
    for (int lane = 0; lane < kPanel; ++lane) {
      if (!tile.intervals.active[lane]) continue;
      const int64_t i = tile.intervals.position[lane];
      add_to_row(&tile.d_queries[lane * head_.width], head_.d,
                 grads_.d_q + i * grads_.d_q_stride);
    }
  }

  const HeadRound<T> head_;
  const HeadGradients<T> grads_;
  const T* delta_;
  int64_t next_row_ = 0;  // to prefetch
  int64_t next_rows_end_ = 0;
  GradRing<T> ring_;
  Scratch<T> weights_;   // [ring rows, 16]
  Scratch<T> d_scores_;  // [ring rows, 16]
  GradTile<T> tiles_[kMacroTiles];
};

// Whether position i attended to nobody.
template <class T>
bool is_lone(const IntervalAttentionGradArgs<T>& args, int64_t head_of_all,
             int64_t i) {
  const auto& forward = args.forward;
  const bool real =
      !forward.mask ||
      forward.mask[head_of_all / forward.heads * forward.length + i];
  return real &&
         forward.softmax[2 * (head_of_all * forward.length + i) + 1] == T(0);
}

// delta_i, and the gradients' first values: 0, or dv = do for a lone token, but
// for the first of successors: its row is for what the last one offers.
template <class T>
void begin_gradients(const IntervalAttentionGradArgs<T>& args, T* delta,
                     int64_t head_of_all) {
  const auto& forward = args.forward;
  const int64_t batch = head_of_all / forward.heads;
  const int64_t head = head_of_all % forward.heads;
  const HeadGradients<T> grads(args, batch, head);
  const T* output = forward.output.head(batch, head);
  const auto ends = forward.successors.ends_of(batch, head, forward.length);
  for (int64_t i = 0; i < forward.length; ++i) {
    const T* d_output = grads.d_output + i * grads.d_output_stride;
    const T* o = output + i * forward.output.row_stride;
    delta[head_of_all * forward.length + i] = dot(d_output, o, forward.d_head);
    T* d_v = grads.d_v + i * grads.d_v_stride;
    std::fill_n(grads.d_q + i * grads.d_q_stride, forward.d_head, T(0));
    if (args.d_k.data) {
      std::fill_n(grads.d_k + i * grads.d_k_stride, forward.d_head, T(0));
    }
    if (is_lone(args, head_of_all, i) && i != ends.first) {
      std::copy_n(d_output, forward.d_head, d_v);
    } else {
      std::fill_n(d_v, forward.d_head, T(0));
    }
  }
}

// Moves what the last of successors offers, its own value, from the first one's
// row of d_v, and gives that its own.
template <class T>
void end_gradients(const IntervalAttentionGradArgs<T>& args,
                   int64_t head_of_all) {
  const auto& forward = args.forward;
  const int64_t batch = head_of_all / forward.heads;
  const int64_t head = head_of_all % forward.heads;
  const auto ends = forward.successors.ends_of(batch, head, forward.length);
  if (ends.first < 0) return;
  const HeadGradients<T> grads(args, batch, head);
  T* first = grads.d_v + ends.first * grads.d_v_stride;
  const bool lone = is_lone(args, head_of_all, ends.first);
  const T* own =
      lone ? grads.d_output + ends.first * grads.d_output_stride : kZeroRow<T>;
  if (ends.last != ends.first) {
    add_to_row(first, forward.d_head, grads.d_v + ends.last * grads.d_v_stride);
  }
  copy_row(own, forward.d_head, forward.d_head, first);
}

// How far the queries look from their own places, at most.
struct Reach {
  int64_t back = 0;
  int64_t ahead = 0;
};

template <class T>
Reach reach_of(const IntervalAttentionArgs<T>& args, int64_t batch,
               int64_t head) {
  Reach reach;
  const HeadRound<T> view(args, batch, head, /*at_round=*/0);
  for (int64_t at = 0; at < args.length * view.rounds; ++at) {
    const int64_t begin = view.interval[2 * at];
    const int64_t end = view.interval[2 * at + 1];
    if (begin >= end) continue;
    reach.back = std::max(reach.back, view.place[at] - begin);
    reach.ahead = std::max(reach.ahead, end - 1 - view.place[at]);
  }
  return reach;
}

using Phases = std::vector<std::vector<GradTask>>;

// Adds the tasks of one round of a head to `phases`, which run in turn: tasks
// of the same phase touch different rows. By the head's own reach, so that a
// row's sums have the same order alone and in a batch.
//
// Short reach: a task is a segment with all its keys. Segments two apart touch
// different rows, so the even ones come first and then the odd ones.
//
// Long reach (full attention): a task is a pair of a query segment and the key
// segment `apart` before it, one distance at a time. It touches the rows of
// both, and every segment has one such pair as queries and one as keys: so the
// pairs are taken in two turns, alternating along the chain s, s - apart, ...
void add_phases(int64_t head, int64_t length, const Reach& reach,
                Phases& phases) {
  constexpr int64_t kRows = kSegmentRows;
  const int64_t segments = (length + kRows - 1) / kRows;
  // Keys come in whole panels.
  const bool near = 2 * (std::max(reach.back, reach.ahead) + kPanel) <= kRows;
  const auto apart_at_most = [&](int64_t far) {
    return near ? 0 : std::min((far + kRows - 1) / kRows, segments - 1);
  };
  std::size_t phase = 0;
  for (int64_t apart = -apart_at_most(reach.ahead);
       apart <= apart_at_most(reach.back); ++apart) {
    for (int64_t turn = 0; turn < 2; ++turn, ++phase) {
      if (phases.size() <= phase) phases.emplace_back();
      for (int64_t s = 0; s < segments; ++s) {
        const int64_t link = near ? s : apart == 0 ? 0 : s / std::abs(apart);
        const int64_t keys = s - apart;
        if (link % 2 != turn || keys < 0 || keys >= segments) continue;
        phases[phase].push_back(
            {head, s * kRows, std::min((s + 1) * kRows, length),
             near ? 0 : keys * kRows,
             near ? length : std::min((keys + 1) * kRows, length)});
      }
    }
  }
}

}  // namespace

template <class T>
void interval_attention_grad(const IntervalAttentionGradArgs<T>& args) {
  const auto& forward = args.forward;
  const int64_t n_heads = forward.batch * forward.heads;
  Scratch<T> delta(n_heads * forward.length);
  std::vector<Reach> reach(n_heads);
  parallel_tasks(n_heads, [&](int64_t head) {
    begin_gradients(args, delta.data(), head);
    reach[head] = reach_of(forward, head / forward.heads, head % forward.heads);
  });

  const int64_t segments = (forward.length + kSegmentRows - 1) / kSegmentRows;
  for_each_head_group(n_heads, segments, [&](int64_t first, int64_t heads) {
    Phases phases;
    for (int64_t head = first; head < first + heads; ++head) {
      add_phases(head, forward.length, reach[head], phases);
    }
    for (int64_t round = 0; round < forward.rounds.rounds; ++round) {
      for (const auto& tasks : phases) {
        parallel_tasks(std::ssize(tasks), [&](int64_t at) {
          const int64_t head = tasks[at].head;
          GradSegment<T>(args, delta.data(), head / forward.heads,
                         head % forward.heads, round)
              .run(tasks[at]);
        });
      }
    }
  });
  if (forward.successors.heads == 0) return;
  parallel_tasks(n_heads, [&](int64_t head) { end_gradients(args, head); });
}

template void interval_attention_grad(const IntervalAttentionGradArgs<float>&);
#ifndef __AVX2__  // float64 runs on the plain kernel alone
template void interval_attention_grad(const IntervalAttentionGradArgs<double>&);
#endif

}  // namespace reformer::kernels::cpu::REFORMER_ISA
