#include "reformer/tasks/recall.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <span>

#include "reformer/data/row_key.h"
#include "reformer/data/shuffle.h"

namespace reformer {
namespace {

// What the second number of a counter says that is drawn.
enum Purpose : uint32_t { kFiller, kSlots, kKeys };

// Which slots a pair and its query have.
struct Link {
  int64_t pair;
  int64_t query;
};

// Any two slots so far apart, of an octave of distances that is as likely as
// the others. In whole numbers, which are the same on every machine.
Link any_link(int64_t slots, const PhiloxCounter& bits) {
  const int64_t octaves = std::bit_width(static_cast<uint64_t>(slots - 1));
  const int64_t least = int64_t{1} << below(octaves, bits[0]);
  const int64_t most = std::min(2 * least, slots) - 1;
  const int64_t distance = least + below(most - least + 1, bits[1]);
  const int64_t pair = below(slots - distance, bits[2]);
  return {pair, pair + distance};
}

// No slot is in two of them. Links are drawn until so many fell on free slots:
// twice as many as there are slots for two fifths of them; and while two slots
// are free, a link between them can be drawn.
std::vector<Link> links_of(int64_t slots, int64_t count, PhiloxKey key) {
  std::vector<bool> taken(static_cast<size_t>(slots));
  std::vector<Link> links;
  for (uint32_t i = 0; int64_t(links.size()) < count; ++i) {
    const auto link = any_link(slots, philox(key, {i, kSlots, 0, 0}));
    const auto pair = static_cast<size_t>(link.pair);
    const auto query = static_cast<size_t>(link.query);
    if (taken[pair] || taken[query]) continue;
    taken[pair] = taken[query] = true;
    links.push_back(link);
  }
  return links;
}

void fill(std::span<int64_t> out, int64_t values, PhiloxKey key) {
  PhiloxCounter bits{};
  for (size_t i = 0; i < out.size(); ++i) {
    if (i % 4 == 0) {
      bits = philox(key, {static_cast<uint32_t>(i / 4), kFiller, 0, 0});
    }
    out[i] = below(values, bits[i % 4]);
  }
}

// As many as int64 holds where there are more.
int64_t key_count(int64_t tokens, int64_t key_length) {
  constexpr int64_t kMost = int64_t{1} << 62;
  int64_t count = 1;
  for (int64_t i = 0; i < key_length; ++i) {
    count = count > kMost / tokens ? kMost : count * tokens;
  }
  return count;
}

Draw draw_of(Split split) {
  return split == Split::kValidation ? Draw::kRecallValidation
                                     : Draw::kRecallTest;
}

}  // namespace

RecallTask::RecallTask(const Config& config)
    : tokens_(config.task.alphabet),
      key_length_(config.task.key_length),
      pairs_(recall_pairs(config)),
      batch_(config.train.batch),
      length_(config.train.length),
      seed_(config.train.seed) {}

Batch RecallTask::empty_batch(int64_t rows) const {
  return {at::empty({rows, length_}, at::kLong),
          at::zeros({rows, length_}, at::kBool),
          at::zeros({rows, length_}, at::kLong)};
}

void RecallTask::write_row(Batch& batch, int64_t row, PhiloxKey key) const {
  auto* tokens = batch.tokens.mutable_data_ptr<int64_t>() + row * length_;
  auto* loss_mask = batch.loss_mask.mutable_data_ptr<bool>() + row * length_;
  auto* distances = batch.distances.mutable_data_ptr<int64_t>() + row * length_;
  fill({tokens, static_cast<size_t>(length_)}, tokens_, key);
  const int64_t slot = key_length_ + 1;
  const int64_t keys = key_count(tokens_, key_length_);
  const auto bits_of_keys = philox(key, {0, kKeys, 0, 0});
  const PhiloxKey order = {bits_of_keys[0], bits_of_keys[1]};
  int64_t next_key = 0;
  for (const auto& link : links_of(length_ / slot, pairs_, key)) {
    int64_t* pair = tokens + link.pair * slot;
    int64_t* query = tokens + link.query * slot;
    int64_t rest = shuffled(next_key++, keys, order);
    for (int64_t i = 0; i < key_length_; ++i, rest /= tokens_) {
      pair[i] = query[i] = tokens_ + rest % tokens_;
    }
    query[key_length_] = pair[key_length_];  // what filler made it
    loss_mask[link.query * slot + key_length_] = true;
    distances[link.query * slot + key_length_] = query - pair;
  }
}

Batch RecallTask::training_batch(int64_t index) const {
  auto batch = empty_batch(batch_);
  for (int64_t row = 0; row < batch_; ++row) {
    write_row(batch, row, row_key(seed_, Draw::kRecallTraining, index, row));
  }
  return batch;
}

int64_t RecallTask::evaluation_batches(Split) const {
  return (kExamples + batch_ - 1) / batch_;
}

// Keyed on the example alone, so that the examples do not depend on the size
// of the batches.
Batch RecallTask::evaluation_batch(Split split, int64_t index) const {
  assert(index >= 0 && index < evaluation_batches(split));
  const int64_t first = index * batch_;
  const int64_t rows = std::min(batch_, kExamples - first);
  auto batch = empty_batch(rows);
  for (int64_t row = 0; row < rows; ++row) {
    write_row(batch, row, row_key(seed_, draw_of(split), first + row, 0));
  }
  return batch;
}

}  // namespace reformer
