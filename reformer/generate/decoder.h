// Generating token by token: the language model's own function, at a cost that
// does not grow with the length of the text.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <map>
#include <vector>

#include "reformer/generate/attention_cache.h"
#include "reformer/generate/captured_step.h"
#include "reformer/model/language_model.h"

namespace reformer {

// For whoever waits while long prompts are read.
struct PrefillWatch {
  // Once it is true, prefill throws Interrupted: between the tasks of a CPU's
  // kernels, between a GPU's layers.
  const std::atomic<bool>* stop = nullptr;

  // Told, after each part, how much of the work is done, up to 1.
  std::function<void(double share)> progress;

  // Called between parts of the work, on this thread: other decoders may go on
  // there. The pass is the same bits with and without.
  std::function<void()> turn = {};
};

// What LanguageModel::logits computes from the whole text in evaluation, one
// token at a time. The same numbers but for rounding when LSH windows are
// `trailing`; a model of `chunk` windows is decoded with trailing ones, which
// see other pairs where a bucket is longer than its window. Only full
// attention takes longer the more was read.
//
// Rows of the batch have texts of different lengths and do not influence each
// other. The model must outlive the decoder and not change. Threads may each
// have a decoder of their own, of the same model too.
class Decoder {
 public:
  // The buckets of every layer, undefined where it is not LSH. Undefined ones
  // are hashed and left here; defined ones are used as they are, after a look
  // at them, which waits for a GPU: where one is out of range Error is thrown
  // and nothing has changed.
  using Buckets = std::vector<at::Tensor>;

  // rounds: of LSH attention; 0: the config's.
  explicit Decoder(const LanguageModel& model, int64_t batch = 1,
                   int64_t rounds = 0);

  // Of no rows yet, and of up to so many, which join and leave between steps.
  struct Joining {
    int64_t most;
  };
  Decoder(const LanguageModel& model, Joining rows, int64_t rounds = 0);

  // Adds the text that `one`, of a batch of 1 and of the same model and rounds,
  // has read: it is the last row then. `one` is of no further use.
  void join(Decoder&& one);

  // Row `row` goes, with its memory, and the last row takes its place.
  void leave(int64_t row);

  // Rows that a step takes tokens for.
  int64_t rows() const { return std::ssize(lengths_); }

  //   tokens  [batch, length] int64 in [0, vocabulary), on the CPU: the
  //            prompts, which may be empty
  //   lengths  [batch]: how many of them are a row's own
  //   returns  [batch, vocabulary]: logits of the token after each prompt, on
  //            the model's device
  //
  // Once, and before any step: the whole batch in one pass. A decoder whose
  // prefill was interrupted is of no further use. On a CPU many positions are
  // multiplied by packed matrices: by those that are in use
  // (PackedMatrices::Use), or by some that are packed for this pass, which take
  // the memory of the matrices a second time.
  at::Tensor prefill(const at::Tensor& tokens,
                     const std::vector<int64_t>& lengths,
                     Buckets* buckets = nullptr,
                     const PrefillWatch& watch = {});

  //   tokens  [rows] int64, on the CPU: the next token of each row
  //   returns  [rows, vocabulary]: logits of the one after it, likewise
  //
  // Of rows that join and leave a GPU computes a power of two, the rest of them
  // for nothing, so that as many captures serve all. On a CPU a row's logits
  // may be rounded otherwise when there are more or fewer rows (LibTorch's
  // matmuls), on a GPU when their power of two is another.
  // Nothing waits for a GPU. There steps without `buckets` replay a captured
  // one, to the same bits (docs/decisions/015); the few that capture do wait.
  // Throws Error beyond the model's last position.
  at::Tensor step(const at::Tensor& tokens, Buckets* buckets = nullptr);

  // Whether the last step left a capture that the next one may replay.
  bool captured() const { return captured_now_; }

 private:
  template <class AddAttention, class Done>
  Streams run(Streams y, const AddAttention& add_attention, const Done& done,
              Buckets* buckets);
  Streams embed(const at::Tensor& inputs) const;
  at::Tensor last_inputs(const at::Tensor& inputs,
                         const std::vector<int64_t>& counts) const;
  at::Tensor recent_with(const at::Tensor& inputs);
  at::Tensor compute_step(const at::Tensor& inputs, Buckets* buckets);
  void check_tokens(const at::Tensor& tokens) const;
  void check_buckets(Buckets* buckets, int64_t length) const;

  bool can_be_captured() const;
  int64_t computed_rows() const;
  void put_row(int64_t row, const at::Tensor& next, const at::Tensor& recent,
               int64_t adds);

  const LanguageModel& model_;
  Pass pass_;
  int64_t joining_ = 0;           // rows that may join; 0: a batch that stays
  std::vector<int64_t> lengths_;  // [rows]: positions read, start included
  at::Tensor next_;    // [batch]: the same on the model's device; of rows that
                       // are not there 0
  at::Tensor adds_;    // [batch]: 1, and 0 of rows that are not there
  at::Tensor recent_;  // [batch, context of n-grams]: the last inputs, there
  std::vector<AttentionCache> caches_;
  bool captured_now_ = false;
  std::map<int64_t, CapturedStep> captured_;  // by computed rows; last: it ends
                                              // first, when the GPU is done
};

}  // namespace reformer
