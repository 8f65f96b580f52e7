#include "reformer/tasks/translation_toy.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "reformer/data/row_key.h"
#include "reformer/tasks/toy_language.h"
#include "reformer/tasks/translation.h"

namespace reformer {
namespace {

std::vector<int32_t> with_end(const std::vector<int64_t>& words) {
  std::vector<int32_t> tokens(words.begin(), words.end());
  tokens.push_back(static_cast<int32_t>(kToyEnd));
  return tokens;
}

Draw draw_of(Split split) {
  return split == Split::kValidation ? Draw::kToyValidation : Draw::kToyTest;
}

}  // namespace

TranslationToyTask::TranslationToyTask(
    const Config& config, std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)),
      words_(config.task.alphabet),
      rows_(config.train.batch_tokens > 0
                ? config.train.batch_tokens / (2 * config.train.length)
                : config.train.batch),
      longest_(config.train.length - 1),
      seed_(config.train.seed) {}

std::vector<int64_t> TranslationToyTask::sentence(PhiloxKey key) const {
  const auto size = below(longest_, philox(key, {0, 1, 0, 0})[0]) + 1;
  std::vector<int64_t> words;
  for (int64_t i = 0; i < size; ++i) {
    const auto bits = philox(key, {static_cast<uint32_t>(i / 4), 0, 0, 0});
    words.push_back(kFirstToyWord + below(words_, bits[size_t(i % 4)]));
  }
  return words;
}

Batch TranslationToyTask::batch_of(
    const std::vector<std::vector<int64_t>>& sentences) const {
  size_t longest = 0;
  for (const auto& words : sentences) longest = std::max(longest, words.size());
  const auto length = static_cast<int64_t>(longest) + 1;
  BatchRows rows(std::ssize(sentences), length, length);
  for (const auto& words : sentences) {
    rows.add(with_end(words), with_end(toy_translation(words, words_)));
  }
  return rows.take();
}

Batch TranslationToyTask::training_batch(int64_t index) const {
  std::vector<std::vector<int64_t>> sentences;
  for (int64_t row = 0; row < rows_; ++row) {
    sentences.push_back(
        sentence(row_key(seed_, Draw::kToyTraining, index, row)));
  }
  return batch_of(sentences);
}

int64_t TranslationToyTask::evaluation_batches(Split) const {
  return (kExamples + rows_ - 1) / rows_;
}

// Keyed on the example alone, so that the examples do not depend on the size
// of the batches.
Batch TranslationToyTask::evaluation_batch(Split split, int64_t index) const {
  assert(index >= 0 && index < evaluation_batches(split));
  std::vector<std::vector<int64_t>> sentences;
  for (int64_t i = index * rows_; i < std::min(kExamples, (index + 1) * rows_);
       ++i) {
    sentences.push_back(sentence(row_key(seed_, draw_of(split), i, 0)));
  }
  return batch_of(sentences);
}

std::vector<LinePair> TranslationToyTask::lines(Split split) const {
  std::vector<LinePair> pairs;
  for (int64_t i = 0; i < kExamples; ++i) {
    const auto words = sentence(row_key(seed_, draw_of(split), i, 0));
    pairs.push_back({tokenizer_->decode(words),
                     tokenizer_->decode(toy_translation(words, words_))});
  }
  return pairs;
}

double TranslationToyTask::metric_of(double mean_loss) const {
  return std::exp(mean_loss);
}

}  // namespace reformer
