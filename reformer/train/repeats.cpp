#include "reformer/train/repeats.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

// The rows all of which is text.
at::Tensor whole_rows(const Batch& batch) {
  const auto rows = at::nonzero(batch.loss_mask.all(1)).flatten();
  return batch.tokens.index_select(0, rows);
}

double sum_at(const at::Tensor& losses, const at::Tensor& positions) {
  return losses.index_select(1, positions).sum().item<double>();
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
    sums_.distance = distance;
  }

  // The text with its pieces repeated.
  at::Tensor of(const at::Tensor& text) const {
    return text.index_select(1, source_);
  }

  // The losses of that, and of the text as it is; both [rows, length] float64.
  void add(const at::Tensor& losses, const at::Tensor& plain) {
    sums_.repeat += sum_at(losses, repeat_);
    sums_.first += sum_at(losses, first_);
    sums_.no_copy += sum_at(plain, original_);
    sums_.count += losses.size(0) * repeat_.size(0);
  }

  RepeatLosses means() const {
    RepeatLosses means = sums_;
    for (double* sum : {&means.repeat, &means.first, &means.no_copy}) {
      *sum /= double(means.count);
      require(std::isfinite(*sum),
              "the loss is not finite: the model has diverged");
    }
    return means;
  }

 private:
  at::Tensor source_;    // [length] int64: RepeatLayout::source
  at::Tensor repeat_;    // [counted] positions in repeats
  at::Tensor first_;     // [counted] where the same tokens came first
  at::Tensor original_;  // [counted] where they are in the text as it is
  RepeatLosses sums_;
};

// The `i`-th of `used` numbers spread over 0 to all - 1.
int64_t spread(int64_t i, int64_t used, int64_t all) {
  return i * (all / used) + i * (all % used) / used;
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
    const LanguageModel& model, const Task& task, Split split,
    const std::vector<int64_t>& distances, int64_t batches, int64_t rounds,
    const EvaluationProgress& progress) {
  const int64_t length = task.evaluation_batch(split, 0).tokens.size(1);
  std::vector<Repeats> repeats;
  for (const int64_t distance : distances) {
    repeats.emplace_back(length, distance);
  }
  const Pass pass{static_cast<uint64_t>(model.config().train.seed), /*step=*/0,
                  /*training=*/false, rounds};
  const auto losses_of = [&](const at::Tensor& tokens) {
    return model.losses(tokens, pass).to(at::kCPU, at::kDouble);
  };
  const int64_t all = task.evaluation_batches(split);
  const int64_t used = batches > 0 ? std::min(batches, all) : all;
  int64_t sequences = 0;
  for (int64_t i = 0; i < used; ++i) {
    if (progress) progress(i, used);
    const auto text =
        whole_rows(task.evaluation_batch(split, spread(i, used, all)));
    if (text.size(0) == 0) continue;
    sequences += text.size(0);
    const auto plain = losses_of(text);
    for (auto& each : repeats) each.add(losses_of(each.of(text)), plain);
  }
  require(sequences > 0, "recall: a whole sequence of ", length,
          " bytes is required, the split is shorter");
  std::vector<RepeatLosses> means;
  for (const auto& each : repeats) means.push_back(each.means());
  return means;
}

}  // namespace reformer
