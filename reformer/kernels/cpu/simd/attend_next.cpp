// Attention of one new position, one (row, head) at a time: collects the
// positions that it sees, has their rows fetched as soon as it knows of them,
// and reads each key and value once, from wherever it lies.
#include "reformer/kernels/attend_next.h"

#include <bit>

#include "reformer/base/parallel.h"
#include "reformer/kernels/cpu/simd/interval_tile.h"

namespace reformer::kernels::cpu::REFORMER_ISA {
namespace {

// A set of at most `most` positions. Its size depends on what one query sees,
// not on the length of the text, so it stays in the first-level cache.
class PositionSet {
 public:
  explicit PositionSet(int64_t most)
      : bits_(std::bit_width(static_cast<uint64_t>(2 * most))),
        slots_(int64_t{1} << bits_) {
    std::fill_n(slots_.data(), int64_t{1} << bits_, -1);
  }

  // Whether it was not there.
  bool insert(int32_t position) {
    constexpr uint32_t kGolden = 2654435769;  // 2^32 / golden ratio: Fibonacci
    uint32_t slot = (static_cast<uint32_t>(position) * kGolden) >> (32 - bits_);
    while (slots_[slot] != -1) {
      if (slots_[slot] == position) return false;
      slot = (slot + 1) & ((uint32_t{1} << bits_) - 1);
    }
    slots_[slot] = position;
    return true;
  }

 private:
  int bits_;
  Scratch<int32_t> slots_;
};

// One (row, head).
template <class T>
class Query {
 public:
  Query(const AttendNextArgs<T>& args, int64_t batch, int64_t head)
      : args_(args),
        pages_(args.pages.row(batch)),
        head_(head),
        own_position_(args.position[batch]),
        range_(args.ranges[batch]),
        lists_(args.lists + (batch * args.heads + head) * args.n_lists),
        q_(args.q.head(batch, head)),
        output_(args.output.head(batch, head)),
        most_(range_.end - range_.begin + listed(0, args.n_lists)),
        positions_(most_),
        scores_(padded<T>(most_)) {}

  void attend() {
    collect();
    if (n_ == 0) {
      const T* own = pages_.value(head_, own_position_);
      return copy_row(own, args_.d_head, args_.d_head, output_);
    }
    score();
    const T sum = weigh();
    add_values(T(1) / sum);
  }

 private:
  int64_t together() const {
    return args_.lists_together > 0 ? args_.lists_together
                                    : std::max<int64_t>(1, args_.n_lists);
  }

  int64_t listed(int64_t first, int64_t end) const {
    int64_t sum = 0;
    for (int64_t i = first; i < end; ++i) sum += lists_[i].size;
    return sum;
  }

  // A range lies in one piece: the processor itself fetches ahead there. What
  // is scattered goes to the level-2 cache, in which a few hundred rows fit.
  void collect() {
    for (int64_t p = range_.begin; p < range_.end; ++p) {
      positions_[n_++] = static_cast<int32_t>(p);
    }
    ranged_ = n_;
    for (int64_t i = 0; i < args_.n_lists; i += together()) {
      collect_group(i, std::min(i + together(), args_.n_lists));
    }
  }

  void collect_group(int64_t first, int64_t end) {
    PositionSet seen(listed(first, end));
    for (int64_t i = first; i < end; ++i) {
      for (int64_t e = 0; e < lists_[i].size; ++e) {
        const int32_t p = lists_[i].data[e];
        const bool in_range = p >= range_.begin && p < range_.end;
        if (in_range || !seen.insert(p)) continue;
        positions_[n_++] = p;
        // The value lies behind the key.
        prefetch_row(pages_.key(head_, p), 2 * pages_.shape.width);
      }
    }
  }

  void score() {
    alignas(64) T query[256];
    copy_row(q_, args_.d_head, pages_.shape.width, query);
    scale_row(query, pages_.shape.width, T(args_.scale), query);
    for (int64_t i = 0; i < n_; ++i) {
      scores_[i] =
          dot(query, pages_.key(head_, positions_[i]), pages_.shape.width);
    }
    const int64_t groups = (args_.n_lists + together() - 1) / together();
    if (groups <= 1) return;
    const T in_every_group = std::log(T(groups));
    for (int64_t i = 0; i < ranged_; ++i) scores_[i] += in_every_group;
  }

  // Turns scores into weights, relative to the largest; returns their sum.
  T weigh() {
    const int64_t width = padded<T>(n_);
    std::fill(&scores_[n_], &scores_[width], kMinusInfinity<T>);
    const T max = *std::max_element(&scores_[0], &scores_[n_]);
    Vector<T> sums = {};
    for (int64_t i = 0; i < width; i += kLanes<T>) {
      const Vector<T> weights = exp_of<T>(load(&scores_[i]) - max);
      sums += weights;
      store(&scores_[i], weights);
    }
    return sum_of<T>(sums);
  }

  void add_values(T factor) {
    alignas(64) T sums[256];
    zero_row(pages_.shape.width, sums);
    for (int64_t i = 0; i < n_; ++i) {
      const T* value = pages_.value(head_, positions_[i]);
      for (int64_t c = 0; c < pages_.shape.width; c += kLanes<T>) {
        store(sums + c, load(sums + c) + load(value + c) * scores_[i]);
      }
    }
    scale_row(sums, pages_.shape.width, factor, sums);
    copy_row(sums, args_.d_head, args_.d_head, output_);
  }

  const AttendNextArgs<T>& args_;
  const KeyValuePages<T> pages_;
  const int64_t head_;
  const int64_t own_position_;
  const PositionRange range_;
  const PositionList* lists_;
  const T* q_;
  T* output_;
  const int64_t most_;  // positions, with repetitions
  int64_t n_ = 0;       // positions, once in each group
  int64_t ranged_ = 0;  // of them those of the range, which come first
  Scratch<int32_t> positions_;
  Scratch<T> scores_;
};

template <class T>
int64_t attended_positions(const AttendNextArgs<T>& args) {
  int64_t sum = 0;
  for (int64_t row = 0; row < args.batch; ++row) {
    sum += args.heads * (args.ranges[row].end - args.ranges[row].begin);
  }
  const int64_t lists = args.batch * args.heads * args.n_lists;
  for (int64_t i = 0; i < lists; ++i) sum += args.lists[i].size;
  return sum;
}

}  // namespace

template <class T>
void attend_next(const AttendNextArgs<T>& args) {
  // A few milliseconds of work. LSH attention of one text stays far below it,
  // and had better not wait for another core.
  constexpr int64_t kWorthwhile = 65536;
  parallel_tasks_if(
      attended_positions(args) >= kWorthwhile, args.batch * args.heads,
      [&](int64_t task) {
        Query<T>(args, task / args.heads, task % args.heads).attend();
      });
}

template void attend_next(const AttendNextArgs<float>&);
#ifndef __AVX2__  // float64 runs on the plain kernel alone
template void attend_next(const AttendNextArgs<double>&);
#endif

}  // namespace reformer::kernels::cpu::REFORMER_ISA
