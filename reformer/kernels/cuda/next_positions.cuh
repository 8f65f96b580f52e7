// Which positions the next one of a text sees, cut into parts, a block each.
#pragma once

#include <algorithm>
#include <climits>

#include "reformer/kernels/attend_next.h"
#include "reformer/kernels/cuda/launch.h"

namespace reformer::kernels::cuda {

inline constexpr int kTile = 128;  // positions that a block takes at a time
inline constexpr int kMaxRangeParts = 64;
inline constexpr int kMaxListParts = 16;

// The (row, head) of this block.
struct NextHead {
  int64_t row_head;
  int64_t row;
  int64_t head;
  int64_t position;
  int64_t range_begin;
  int last_offers_input;  // the position before, where keys offer the value of
                          // their successor; else none

  template <class T>
  __device__ explicit NextHead(const AttendNextArgs<T>& args)
      : row_head(blockIdx.y),
        row(row_head / args.heads),
        head(row_head % args.heads),
        position(args.position[row]),
        range_begin(args.earlier.begin(position)),
        last_offers_input(head < args.successor_heads
                              ? static_cast<int>(position - 1)
                              : INT_MIN) {}
};

// First the pieces of the range, then those of each round's ring. How many
// pieces a range has depends on its own length alone: a row in a batch is added
// up as it would be alone, and leaves the blocks of longer rows unused.
class NextParts {
 public:
  NextParts(const EarlierPositions& earlier, const BucketHistory& history,
            int64_t longest)
      : range_parts_(range_parts(std::min(
            longest, earlier.last + std::max<int64_t>(earlier.chunk - 1, 0)))),
        list_parts_(static_cast<int>(std::clamp<int64_t>(
            ceil_div(history.window, kTile), 1, kMaxListParts))),
        rounds_(static_cast<int>(history.rounds)) {}

  constexpr int launched() const { return range_parts_ + listed(); }
  constexpr int listed() const { return rounds_ * list_parts_; }
  constexpr int range_launched() const { return range_parts_; }
  constexpr int lists_per_round() const { return list_parts_; }

  // Of this row.
  __device__ int range_used(const NextHead& own) const {
    return range_parts(own.position - own.range_begin);
  }
  __device__ int of(const NextHead& own) const {
    return range_used(own) + listed();
  }
  __device__ bool unused(const NextHead& own, int part) const {
    return part >= range_used(own) && part < range_parts_;
  }

 private:
  // At least one, whose block writes the new key.
  static constexpr int range_parts(int64_t length) {
    const int64_t tiles = (length + kTile - 1) / kTile;
    return tiles < 1                ? 1
           : tiles > kMaxRangeParts ? kMaxRangeParts
                                    : static_cast<int>(tiles);
  }

  int range_parts_;
  int list_parts_;
  int rounds_;
};

// The positions of one part: `begin` to `end` are positions of the range, or
// count a ring's members.
template <class T>
class SeenPart {
 public:
  int64_t begin;
  int64_t end;

  // By the whole block.
  __device__ SeenPart(const AttendNextArgs<T>& args, const NextHead& own,
                      const NextParts& parts, int part)
      : history_(args.history), pages_(args.pages.row(own.row)), own_(own) {
    if (part < parts.range_launched()) {
      const int64_t length = own.position - own.range_begin;
      take_piece(own.range_begin, length, part, parts.range_used(own));
      return;
    }
    const int list = part - parts.range_launched();
    round_ = list / parts.lists_per_round();
    first_round_ = static_cast<int>(history_.first_of_group(round_));
    look_at_rings(args.buckets);
    const int64_t round = own.row_head * history_.rounds + round_;
    const int64_t bucket = history_.bucket(round, args.buckets[round]);
    const int64_t count = history_.counts[bucket];
    const int64_t held = count < history_.window ? count : history_.window;
    members_ = history_.members + bucket * history_.window;
    take_piece(count - held, held, list % parts.lists_per_round(),
               parts.lists_per_round());
  }

  // What is added to scores: those of the range count in every group of rounds.
  __device__ float in_every_group() const {
    const int64_t groups = history_.groups();
    return members_ == nullptr && groups > 1 ? logf(float(groups)) : 0.f;
  }

  // -1: none, or one that the range or an earlier round of the group sees too.
  __device__ int position(int64_t i) const {
    if (i >= end) return -1;
    if (members_ == nullptr) return static_cast<int>(i);
    const int32_t p = members_[i % history_.window];
    if (p >= own_.range_begin) return -1;
    const uint16_t* buckets = pages_.buckets(own_.head, p);
    for (int r = first_round_; r < round_; ++r) {
      // A ring holds all of its bucket's members since its oldest.
      if (p >= oldest_[r] && buckets[r] == bucket_[r]) return -1;
    }
    return p;
  }

 private:
  __device__ void take_piece(int64_t first, int64_t length, int piece,
                             int pieces) {
    const int64_t each = (length + pieces - 1) / pieces;
    const int64_t from = each * piece < length ? each * piece : length;
    begin = first + from;
    end = first + (from + each < length ? from + each : length);
  }

  // The own bucket of every earlier round, and the oldest position of its ring.
  __device__ void look_at_rings(const uint16_t* buckets) {
    __shared__ uint16_t bucket[kMaxNextRounds];
    __shared__ int32_t oldest[kMaxNextRounds];
    const int r = static_cast<int>(threadIdx.x);
    if (r < round_) {
      const int64_t round = own_.row_head * history_.rounds + r;
      bucket[r] = buckets[round];
      const int64_t at = history_.bucket(round, bucket[r]);
      const int32_t count = history_.counts[at];
      const int64_t slot =
          count > history_.window ? count % history_.window : 0;
      oldest[r] =
          count == 0 ? INT_MAX : history_.members[at * history_.window + slot];
    }
    __syncthreads();
    bucket_ = bucket;
    oldest_ = oldest;
  }

  const BucketHistory& history_;
  const KeyValuePages<T> pages_;
  const NextHead& own_;
  int round_ = 0;
  int first_round_ = 0;
  const int32_t* members_ = nullptr;  // of the ring; null: a range
  const uint16_t* bucket_ = nullptr;  // [round_]
  const int32_t* oldest_ = nullptr;   // [round_]
};

}  // namespace reformer::kernels::cuda
