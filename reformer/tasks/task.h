// A task: batches for training and evaluation, and what to report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reformer/config/config.h"
#include "reformer/data/bitext.h"
#include "reformer/data/cache.h"
#include "reformer/data/data_identity.h"
#include "reformer/data/tokenizer.h"
#include "reformer/model/batch.h"

namespace reformer {

enum class Split { kValidation, kTest };

// Of each split, in tokens, of translation in pairs; 0 of training where
// batches are made up.
struct SplitSizes {
  int64_t training = 0;
  int64_t validation = 0;
  int64_t test = 0;
};

class Task {
 public:
  virtual ~Task() = default;

  // The `index`-th training batch: a function of (config, index) alone, so that
  // a resumed run goes on with the same data.
  virtual Batch training_batch(int64_t index) const = 0;

  // Batches that cover the split exactly once, in order; the last may be
  // shorter in batch or, padded, are false in loss_mask.
  virtual int64_t evaluation_batches(Split split) const = 0;
  virtual Batch evaluation_batch(Split split, int64_t index) const = 0;

  // "bits per byte" for text, "bits per dim" for images, "perplexity" for
  // translation, "loss" for duplication and recall: a mean loss in nats a
  // token, in the units that people compare. Of a split, where that matters:
  // tokens of text stand for more or fewer bytes there.
  virtual std::string metric_name() const = 0;
  virtual double metric_of(double mean_loss) const = 0;  // of training
  virtual double metric_of(double mean_loss, Split /*split*/) const {
    return metric_of(mean_loss);
  }

  virtual SplitSizes sizes() const { return {}; }

  // Training batches that take every sentence once; 0: sequences are drawn, or
  // counted in tokens.
  virtual int64_t epoch_batches() const { return 0; }

  // What its tokens are written with; null: bytes, or numbers.
  virtual std::shared_ptr<const Tokenizer> tokenizer() const { return nullptr; }

  // The lines of a split and their translations in their order, all of them,
  // empty ones too; none where the task is no translation.
  virtual std::vector<LinePair> lines(Split /*split*/) const { return {}; }

  // Of what training and validation read; none where batches are made up. May
  // read all of it once.
  virtual std::vector<DataIdentity> data() const { return {}; }
};

// By task.name. Throws Error for missing or empty data, a text shorter than one
// sequence, a split without an image or a pair, or a vocabulary too small for
// the task. Data that has to be decoded may take minutes the first time:
// `observer` is told. `tokenizer` is the task's (task_tokenizer); null: it is
// opened or made here, and has to have model.vocabulary pieces.
std::unique_ptr<Task> make_task(
    const Config& config, DecodeObserver& observer,
    std::shared_ptr<const Tokenizer> tokenizer = nullptr);
std::unique_ptr<Task> make_task(const Config& config);

}  // namespace reformer
