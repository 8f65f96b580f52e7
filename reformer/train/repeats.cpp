#include "reformer/train/repeats.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "reformer/base/errors.h"
#include "reformer/train/split_batches.h"

namespace reformer {
namespace {

// The rows all of which is text.
at::Tensor whole_rows(const Batch& batch) {
  const auto rows = at::nonzero(batch.loss_mask.all(1)).flatten();
  return batch.tokens.index_select(0, rows);
}

at::Tensor sum_at(const at::Tensor& losses, const at::Tensor& positions) {
  return losses.index_select(1, positions).sum();
}

// The losses of one distance, of one text after the other.
class Repeats {
 public:
  Repeats(int64_t length, int64_t distance) {
    const auto layout = repeat_layout(length, distance);
    source_ = at::tensor(layout.source, at::kLong);
    repeat_ = at::tensor(layout.counted, at::kLong);
    first_ = repeat_ - distance;
    original_ = source_.index_select(0, repeat_);
  }

  // The text with its pieces repeated.
  at::Tensor of(const at::Tensor& text) const {
    return text.index_select(1, source_);
  }

  // Sums of the losses of that, and of the text as it is, both [rows, length]
  // float64: [3], RepeatLosses' first members.
  at::Tensor sums(const at::Tensor& losses, const at::Tensor& plain) const {
    return at::stack({sum_at(losses, repeat_), sum_at(losses, first_),
                      sum_at(plain, original_)});
  }

  int64_t counted() const { return repeat_.size(0); }  // of a text

 private:
  at::Tensor source_;    // [length] int64: RepeatLayout::source
  at::Tensor repeat_;    // [counted] positions in repeats
  at::Tensor first_;     // [counted] where the same tokens came first
  at::Tensor original_;  // [counted] where they are in the text as it is
};

// Of `count` tokens, whose losses sum up to sums [3].
RepeatLosses means_of(const at::Tensor& sums, int64_t distance, int64_t count) {
  const auto means = sums / double(count);
  require_of_all(means.isfinite().all().item<bool>(),
                 "the loss is not finite: the model has diverged");
  return {distance, means[0].item<double>(), means[1].item<double>(),
          means[2].item<double>(), count};
}

}  // namespace

void check_repeat_distance(int64_t length, int64_t distance) {
  const int64_t half = length / 2;
  require(distance > kRepeatLead && distance <= half, "recall: distances from ",
          kRepeatLead + 1, " to ", half, ", half of a sequence of ", length,
          ", are required, got ", distance);
}

RepeatLayout repeat_layout(int64_t length, int64_t distance) {
  check_repeat_distance(length, distance);
  RepeatLayout layout;
  const int64_t half = length / 2;
  const int64_t end = 2 * half;
  for (int64_t position = 0; position < end; ++position) {
    const int64_t to_end = end - 1 - position;
    const int64_t pieces = to_end / (2 * distance);  // whole pairs after it
    const int64_t in_piece = to_end % distance;      // from its end
    const bool repeat = to_end / distance % 2 == 0;
    layout.source.push_back(end - 1 - (pieces * distance + in_piece));
    if (repeat && position >= half && in_piece < distance - kRepeatLead) {
      layout.counted.push_back(position);
    }
  }
  return layout;
}

std::vector<RepeatLosses> losses_on_repeats(
    const LanguageModel& model, const Task& task, const EvaluatedSplit& of,
    const std::vector<int64_t>& distances) {
  const int64_t length = task.evaluation_batch(of.split, 0).tokens.size(1);
  std::vector<Repeats> repeats;
  for (const int64_t distance : distances) {
    repeats.emplace_back(length, distance);
  }
  const auto count = std::ssize(distances);
  auto own = at::zeros({count + 1, 3}, at::kDouble);  // the last: texts
  // Ranks that share a text count it once.
  const bool counts = own_positions(model, length).begin == 0;
  for_each_batch(model, task, of, /*spread=*/true,
                 [&](const Batch& batch, const Pass& pass) {
                   const auto text = whole_rows(batch);
                   if (text.size(0) == 0) return;
                   if (counts) own[count] += text.size(0);
                   const auto plain = own_losses(model, text, pass);
                   for (int64_t i = 0; i < count; ++i) {
                     const auto& each = repeats[size_t(i)];
                     own[i] += each.sums(own_losses(model, each.of(text), pass),
                                         plain);
                   }
                 });
  const auto sums = sum_of_ranks(own, of.world);
  const auto texts = sums[count][0].item<int64_t>();
  require_of_all(texts > 0, "recall: a whole sequence of ", length,
                 " bytes is required, the split is shorter");
  std::vector<RepeatLosses> means;
  for (int64_t i = 0; i < count; ++i) {
    means.push_back(means_of(sums[i], distances[size_t(i)],
                             texts * repeats[size_t(i)].counted()));
  }
  return means;
}

}  // namespace reformer
