#include "reformer/data/length_batches.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>
#include <tuple>

#include "reformer/data/shuffle.h"

namespace reformer {
namespace {

// 1 to 8 are classes of their own, then there are 4 an octave.
int64_t class_step(int64_t length) {
  const int bits = std::bit_width(static_cast<uint64_t>(length - 1));
  return bits <= 3 ? 1 : int64_t{1} << (bits - 3);
}

// The longest of its class.
int64_t class_length(int64_t length, int64_t longest) {
  const int64_t step = class_step(length);
  return std::min(longest, (length + step - 1) / step * step);
}

// What is shuffled anew in each epoch: the batches, and the pairs of a class.
constexpr int64_t kOrderOfBatches = -1;

}  // namespace

LengthBatches::LengthBatches(const std::vector<PairLengths>& pairs,
                             const Limits& limits) {
  sort_into_classes(pairs, limits.longest);
  cut(limits);
}

// By the target's length, and within it by the source's, upwards and downwards
// in turns: neighbours then are alike in both.
void LengthBatches::sort_into_classes(const std::vector<PairLengths>& pairs,
                                      int64_t longest) {
  struct Key {
    int64_t target;
    int64_t source;
    int32_t pair;
  };
  std::vector<Key> keys;
  keys.reserve(pairs.size());
  for (const auto& pair : pairs) {
    assert(pair.source <= longest && pair.target <= longest);
    keys.push_back({class_length(pair.target, longest),
                    class_length(pair.source, longest),
                    static_cast<int32_t>(&pair - pairs.data())});
  }
  const auto downwards = [](int64_t target) {
    return target / class_step(target) % 2 != 0;
  };
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    if (a.target != b.target) return a.target < b.target;
    if (a.source != b.source) {
      return (a.source < b.source) != downwards(a.target);
    }
    return a.pair < b.pair;
  });
  for (const auto& key : keys) {
    if (classes_.empty() || classes_.back().target_length != key.target ||
        classes_.back().source_length != key.source) {
      const auto at = static_cast<int64_t>(order_.size());
      classes_.push_back({at, at, key.source, key.target});
    }
    order_.push_back(key.pair);
    ++classes_.back().end;
  }
}

void LengthBatches::cut(const Limits& limits) {
  for (size_t c = 0; c < classes_.size(); ++c) {
    const auto& one = classes_[c];
    for (int64_t at = one.begin; at < one.end; ++at) {
      if (!batches_.empty()) {
        Cut& last = batches_.back();
        const int64_t source = std::max(last.source_length, one.source_length);
        const int64_t target = std::max(last.target_length, one.target_length);
        const int64_t rows = last.end - last.begin + 1;
        if ((limits.most_rows == 0 || rows <= limits.most_rows) &&
            (limits.most_positions == 0 ||
             rows * (source + target) <= limits.most_positions)) {
          last.end = at + 1;
          last.source_length = source;
          last.target_length = target;
          continue;
        }
      }
      batches_.push_back({at, at + 1, static_cast<int64_t>(c),
                          one.source_length, one.target_length});
    }
  }
}

LengthBatches::Batch LengthBatches::in_order(int64_t index) const {
  const Cut& cut = batches_[size_t(index)];
  return {{order_.begin() + cut.begin, order_.begin() + cut.end},
          cut.source_length,
          cut.target_length};
}

LengthBatches::Batch LengthBatches::shuffled_batch(int64_t index,
                                                   const EpochKey& key) const {
  const int64_t epoch = index / count();
  const int64_t place =
      shuffled(index % count(), count(), key(epoch, kOrderOfBatches));
  const Cut& cut = batches_[size_t(place)];
  Batch batch{{}, cut.source_length, cut.target_length};
  auto c = static_cast<size_t>(cut.first_class);
  PhiloxKey order = key(epoch, int64_t(c));
  for (int64_t at = cut.begin; at < cut.end; ++at) {
    if (at == classes_[c].end) order = key(epoch, int64_t(++c));
    const auto& [begin, end, source, target] = classes_[c];
    const int64_t drawn = begin + shuffled(at - begin, end - begin, order);
    batch.pairs.push_back(order_[size_t(drawn)]);
  }
  return batch;
}

}  // namespace reformer
