// Translation without data: a made language, whose sentences are the reverse of
// the other's, word by word another word.
#pragma once

#include <memory>

#include "reformer/base/philox.h"
#include "reformer/tasks/task.h"

namespace reformer {

// Sentences of 1 to train.length - 1 words of task.alphabet (toy_language), and
// what toy_translation makes of them. A batch has train.batch of them, or as
// many as train.batch_tokens allows; the n-th is a function of config and n
// alone.
class TranslationToyTask : public Task {
 public:
  // Sentences of a split, always the same ones for a seed.
  static constexpr int64_t kExamples = 256;

  TranslationToyTask(const Config& config,
                     std::shared_ptr<const Tokenizer> tokenizer);

  Batch training_batch(int64_t index) const override;
  int64_t evaluation_batches(Split split) const override;
  Batch evaluation_batch(Split split, int64_t index) const override;
  std::string metric_name() const override { return "perplexity"; }
  double metric_of(double mean_loss) const override;
  std::shared_ptr<const Tokenizer> tokenizer() const override {
    return tokenizer_;
  }
  std::vector<LinePair> lines(Split split) const override;

 private:
  std::vector<int64_t> sentence(PhiloxKey key) const;
  Batch batch_of(const std::vector<std::vector<int64_t>>& sentences) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  int64_t words_;
  int64_t rows_;
  int64_t longest_;  // words of a sentence
  int64_t seed_;
};

}  // namespace reformer
