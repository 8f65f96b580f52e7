// Sentences and their translations (paper Sec. 5, WMT14 English to German).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reformer/data/bitext.h"
#include "reformer/data/length_batches.h"
#include "reformer/data/tokenized_bitext.h"
#include "reformer/tasks/task.h"

namespace reformer {

BitextRequest bitext_request(const TaskConfig& task, const std::string& data);

// Batch::source holds the source's tokens and Batch::tokens the target's, each
// with the tokenizer's end token, padded with 0 where source_mask and loss_mask
// are false. A batch has as many pairs of like length as train.batch_tokens (or
// train.batch) allows; training takes every pair once an epoch, in an order
// that the seed and the epoch say (LengthBatches).
//
// The splits are those of bitext_splits, or task.validation and task.test.
// Pairs with an empty side, lines that are not UTF-8 and pairs of more than
// train.length tokens are left out: `observer` is told how many.
class TranslationTask : public Task {
 public:
  // Throws Error as open_bitext does, and for a split without a pair.
  TranslationTask(const Config& config,
                  std::shared_ptr<const Tokenizer> tokenizer,
                  DecodeObserver& observer);

  Batch training_batch(int64_t index) const override;
  int64_t evaluation_batches(Split split) const override;
  Batch evaluation_batch(Split split, int64_t index) const override;
  std::string metric_name() const override { return "perplexity"; }
  double metric_of(double mean_loss) const override;
  SplitSizes sizes() const override;
  int64_t epoch_batches() const override { return train_.batches.count(); }
  std::shared_ptr<const Tokenizer> tokenizer() const override {
    return tokenizer_;
  }
  std::vector<DataIdentity> data() const override;
  std::vector<LinePair> lines(Split split) const override;

 private:
  struct Source {  // a setting's data
    std::shared_ptr<const CacheFile> text;
    TokenizedBitext bitext;
  };
  struct Pairs {
    std::shared_ptr<const Source> source;
    std::vector<bool> lines;           // which of the source's are of it
    std::vector<TokenizedPair> pairs;  // those that have tokens, not too many
    LengthBatches batches;
  };

  std::shared_ptr<const Source> opened(const TaskConfig& task,
                                       const std::string& data,
                                       DecodeObserver& observer) const;
  void split_data(const TaskConfig& task,
                  const std::shared_ptr<const Source>& source);
  void take_pairs(Pairs& split, const char* name, DecodeObserver& observer);
  const Pairs& pairs_of(Split split) const;
  Batch batch_of(const Pairs& split, const LengthBatches::Batch& chosen) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  LengthBatches::Limits limits_;
  int64_t seed_;
  Pairs train_;
  Pairs validation_;
  Pairs test_;
};

// A padded batch of such rows.
class BatchRows {
 public:
  BatchRows(int64_t rows, int64_t source_length, int64_t target_length);

  // Both of at most these lengths, with their ends.
  void add(std::span<const int32_t> source, std::span<const int32_t> target);

  Batch take() { return std::move(batch_); }

 private:
  Batch batch_;
  int64_t row_ = 0;
};

}  // namespace reformer
