// What the forward and the backward pass of interval attention share: one
// head's view of a round, a tile of 16 queries, and its masks.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "reformer/base/memory.h"
#include "reformer/kernels/cpu/simd/panel.h"
#include "reformer/kernels/interval_attention.h"

namespace reformer::kernels::cpu::REFORMER_ISA {

// Tiles that share the keys they stream.
inline constexpr int64_t kMacroTiles = 4;
inline constexpr int64_t kMacroRows = kMacroTiles * kPanel;

// Places of one task. Fixed, so that the order of every sum is, too.
inline constexpr int64_t kSegmentRows = 1024;

// Rows of q, k, v and the sorted order of one round of one (batch, head).
template <class T>
struct HeadRound {
  HeadRound(const IntervalAttentionArgs<T>& args, int64_t batch, int64_t head,
            int64_t at_round)
      : q(args.q.head(batch, head)),
        k(args.k.data ? args.k.head(batch, head) : q),
        v(args.v.head(batch, head)),
        q_stride(args.q.row_stride),
        k_stride(args.k.data ? args.k.row_stride : args.q.row_stride),
        v_stride(args.v.row_stride),
        order(args.rounds.order + batch * args.rounds.order_batch_stride +
              head * args.rounds.order_head_stride + at_round * args.length),
        place(args.rounds.place + batch * args.rounds.place_batch_stride +
              head * args.rounds.place_head_stride),
        interval(args.rounds.interval +
                 batch * args.rounds.interval_batch_stride +
                 head * args.rounds.interval_head_stride),
        mask(args.mask ? args.mask + batch * args.length : nullptr),
        offered(args.successors, batch, head, args.length),
        rounds(args.rounds.rounds),
        round(at_round),
        length(args.length),
        d(args.d_head),
        width(padded<T>(args.d_head)),
        shared(args.k.data == nullptr) {}

  bool is_padded(int64_t i) const { return mask && !mask[i]; }

  // The value that key j offers.
  const T* value(int64_t j) const {
    return v + offered.row(static_cast<int32_t>(j)) * v_stride;
  }

  const T* q;
  const T* k;
  const T* v;
  int64_t q_stride;
  int64_t k_stride;
  int64_t v_stride;
  const int32_t* order;
  const int32_t* place;
  const int32_t* interval;
  const bool* mask;
  OfferedValues offered;
  int64_t rounds;
  int64_t round;
  int64_t length;
  int64_t d;
  int64_t width;  // of a padded row
  bool shared;
};

// What is read in place of a row that is padded or does not exist.
template <class T>
alignas(64) inline constexpr T kZeroRow[256] = {};

template <class T>
inline void copy_row(const T* from, int64_t d, int64_t width, T* to) {
  int64_t c = 0;
  for (; c + kLanes<T> <= d; c += kLanes<T>) store(to + c, load(from + c));
  for (; c < d; ++c) to[c] = from[c];
  for (; c < width; ++c) to[c] = 0;
}

template <class T>
inline void zero_row(int64_t width, T* to) {
  for (int64_t c = 0; c < width; c += kLanes<T>) store(to + c, Vector<T>{});
}

// to[:] = factor * from[:] for a padded row, or a whole panel.
template <class T>
inline void scale_row(const T* from, int64_t width, T factor, T* to) {
  for (int64_t c = 0; c < width; c += kLanes<T>) {
    store(to + c, load(from + c) * factor);
  }
}

template <class T>
inline void add_to_row(const T* from, int64_t d, T* to) {
  int64_t c = 0;
  for (; c + kLanes<T> <= d; c += kLanes<T>) {
    store(to + c, load(to + c) + load(from + c));
  }
  for (; c < d; ++c) to[c] += from[c];
}

// In four sums, which wait less for each other and round less than one.
template <class T>
inline T dot(const T* a, const T* b, int64_t d) {
  Vector<T> sums[4] = {};
  int64_t c = 0;
  for (; c + 4 * kLanes<T> <= d; c += 4 * kLanes<T>) {
    for (int s = 0; s < 4; ++s) {
      const int64_t at = c + s * kLanes<T>;
      sums[s] += load(a + at) * load(b + at);
    }
  }
  for (; c + kLanes<T> <= d; c += kLanes<T>) {
    sums[0] += load(a + c) * load(b + c);
  }
  T sum = sum_of<T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; c < d; ++c) sum += a[c] * b[c];
  return sum;
}

// Into the level-2 cache: what is fetched here is needed a macro tile later,
// and would drive what is needed now out of the first level. For rows that
// will be written, too: nobody else has them, so they come exclusive.
//
// Inlined by force, as are its callers: g++ takes a function that only
// prefetches for one without effect, and drops the call.
template <class T>
[[gnu::always_inline]] inline void prefetch(const T* at) {
  __builtin_prefetch(at, /*write=*/0, /*locality=*/2);
}
template <class T>
[[gnu::always_inline]] inline void prefetch_row(const T* row, int64_t d) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t c = 0; c < d; c += kLine) prefetch(row + c);
}

// 1 / |x| of the 16 vectors x of a panel, 0 where x is too short to have a
// direction.
template <class T>
inline void inverse_norms(const T* panel, int64_t d, T* inverse) {
  alignas(64) T squares[kPanel];
  for (int v = 0; v < kPanelVectors<T>; ++v) {
    Vector<T> sum = {};
    for (int64_t c = 0; c < d; ++c) {
      const Vector<T> x = load(panel + c * kPanel + v * kLanes<T>);
      sum += x * x;
    }
    store(squares + v * kLanes<T>, sum);
  }
  bool overflow = false;
  for (int lane = 0; lane < kPanel; ++lane) {
    const T norm = std::sqrt(squares[lane]);
    inverse[lane] = norm <= T(kSmallestKeyNorm) ? T(0) : T(1) / norm;
    overflow |= !(squares[lane] < T(1e30));
  }
  if (!overflow) return;
  for (int lane = 0; lane < kPanel; ++lane) {
    double sum = 0;
    for (int64_t c = 0; c < d; ++c) {
      sum += double(panel[c * kPanel + lane]) * panel[c * kPanel + lane];
    }
    if (sum >= 1e30) inverse[lane] = T(1 / std::sqrt(sum));
  }
}

// 16 queries at consecutive places of a round: where their intervals are, in
// this round and in the earlier ones.
//
// An interval is kept as begin and size, both shifted so that one signed
// comparison, place - begin < size, is the unsigned one that tests it: AVX2
// has no unsigned comparison.
template <class T>
struct TileIntervals {
  using Lanes = Index<T>[kPanel];

  explicit TileIntervals(int64_t rounds) : earlier(rounds * 2 * kPanel) {}

  void read(const HeadRound<T>& head, int64_t first_place) {
    const int exist = static_cast<int>(
        std::clamp<int64_t>(head.length - first_place, 0, kPanel));
    alignas(64) Lanes ends;
    for (int lane = 0; lane < exist; ++lane) {
      const int64_t i = head.order[first_place + lane];
      const int32_t* own = head.interval + i * head.rounds * 2;
      position[lane] = i;
      own_begin[lane] = own[2 * head.round];
      ends[lane] = own[2 * head.round + 1];
      for (int64_t r = 0; r < head.round; ++r) {
        earlier[(2 * r) * kPanel + lane] = shifted(own[2 * r]);
        earlier[(2 * r + 1) * kPanel + lane] =
            shifted(own[2 * r + 1] - own[2 * r]);
      }
    }
    for (int lane = exist; lane < kPanel; ++lane) {
      position[lane] = -1;
      own_begin[lane] = ends[lane] = 0;
      for (int64_t r = 0; r < head.round; ++r) {
        earlier[(2 * r) * kPanel + lane] = shifted(0);
        earlier[(2 * r + 1) * kPanel + lane] = shifted(0);
      }
    }
    find_hulls(ends, first_place, head.length);
    for (int lane = 0; lane < kPanel; ++lane) {
      own_size[lane] = shifted(ends[lane] - own_begin[lane]);
      own_begin[lane] = shifted(own_begin[lane]);
    }
  }

  bool empty() const { return begin >= end; }

  int64_t position[kPanel];  // -1 beyond the last place
  bool active[kPanel];       // has a key in this round
  int64_t begin;             // the hull of the 16 intervals
  int64_t end;
  int64_t group_begin[kPanel / 4];  // and of each four
  int64_t group_end[kPanel / 4];
  bool holds_self;  // some interval contains its own query
  alignas(64) Lanes own_begin;
  alignas(64) Lanes own_size;
  alignas(64) Lanes own_place;
  Scratch<Index<T>> earlier;  // [rounds, 2, 16]: begin and size

 private:
  static Index<T> shifted(Index<T> x) {
    return x ^ std::numeric_limits<Index<T>>::min();
  }

  void find_hulls(const Lanes& ends, int64_t first_place, int64_t length) {
    holds_self = false;
    begin = length;
    end = 0;
    for (int group = 0; group < kPanel / 4; ++group) {
      int64_t first = length;
      int64_t last = 0;
      for (int lane = group * 4; lane < group * 4 + 4; ++lane) {
        const Index<T> from = own_begin[lane];
        const Index<T> to = ends[lane];
        const auto place = static_cast<Index<T>>(first_place + lane);
        own_place[lane] = place;
        active[lane] = from < to;
        if (!active[lane]) continue;
        first = std::min<int64_t>(first, from);
        last = std::max<int64_t>(last, to);
        holds_self |= from <= place && place < to;
      }
      group_begin[group] = first;
      group_end[group] = last;
      begin = std::min(begin, first);
      end = std::max(end, last);
    }
  }
};

// Whether `place` lies in the intervals of shifted begin and size.
template <class T>
inline IndexVector<T> lies_in(Index<T> place, const Index<T>* begin,
                              const Index<T>* size) {
  // Unsigned, because this difference is meant to wrap around.
  const auto from = BitsVector<T>(load_index<T>(begin));
  const auto distance =
      IndexVector<T>(std::make_unsigned_t<Index<T>>(place) - from);
  return distance < load_index<T>(size);
}

// One vector of scores of a key, with -inf where its query does not attend to
// it here: outside the interval, itself, or met in an earlier round.
// `earlier_places` are the key's places in the rounds before this one.
template <class T>
inline Vector<T> mask_scores(Vector<T> scores, const TileIntervals<T>& tile,
                             int v, Index<T> key_place, int64_t earlier_rounds,
                             const int32_t* earlier_places, bool exclude_self) {
  const int at = v * kLanes<T>;
  const Vector<T> none = all(kMinusInfinity<T>);
  scores = lies_in<T>(key_place, tile.own_begin + at, tile.own_size + at)
               ? scores
               : none;
  const Index<T>* earlier = tile.earlier.data() + at;
  for (int64_t r = 0; r < earlier_rounds; ++r) {
    scores = lies_in<T>(earlier_places[r], earlier + 2 * r * kPanel,
                        earlier + (2 * r + 1) * kPanel)
                 ? none
                 : scores;
  }
  if (exclude_self) {
    const auto self = load_index<T>(tile.own_place + at);
    scores = self == key_place ? none : scores;
  }
  return scores;
}

// The keys that a step of `tile` computes, of those at places [from, to): its
// hull, in whole groups. Empty when from >= to.
struct KeyRange {
  int64_t from;
  int64_t to;
};

template <class T>
inline KeyRange keys_of(const TileIntervals<T>& tile, int64_t from,
                        int64_t to) {
  from = std::max(from, tile.begin);
  to = std::min(to, tile.end);
  if (from >= to) return {0, 0};
  return {from / kKeyGroup * kKeyGroup,
          (to + kKeyGroup - 1) / kKeyGroup * kKeyGroup};
}

// Rows of a ring of `arrays` arrays: what fits into half a level-2 cache, in
// whole macro tiles.
template <class T>
inline int64_t ring_rows(int64_t arrays, int64_t width) {
  const int64_t rows = (int64_t{256} << 10) / (arrays * width * sizeof(T));
  return std::clamp<int64_t>(rows / kMacroRows * kMacroRows, 128, 512);
}

// The parts of [begin, end) between multiples of `ring`: each lies side by
// side in a ring of that many rows.
template <class Body>
inline void for_each_piece(int64_t begin, int64_t end, int64_t ring,
                           const Body& body) {
  while (begin < end) {
    const int64_t stop = std::min(end, (begin / ring + 1) * ring);
    body(begin, stop);
    begin = stop;
  }
}

// Calls body(first, heads) for groups of heads that are large enough to keep
// many threads busy and small enough to stay in the cache from round to round.
template <class Body>
inline void for_each_head_group(int64_t heads, int64_t segments,
                                const Body& body) {
  const int64_t group = std::max<int64_t>(1, 64 / segments);
  for (int64_t first = 0; first < heads; first += group) {
    body(first, std::min(group, heads - first));
  }
}

}  // namespace reformer::kernels::cpu::REFORMER_ISA
