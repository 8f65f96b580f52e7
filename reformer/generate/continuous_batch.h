// Texts that go on together, each as long as it likes: continuous batching.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "reformer/generate/decoder.h"
#include "reformer/generate/sampler.h"
#include "reformer/model/language_model.h"
#include "reformer/ops/packed_matrices.h"

namespace reformer {

// A text that joins.
struct JoiningText {
  std::vector<int64_t> prompt;  // may be empty
  SamplerConfig sampler;
  int64_t row = 0;  // of the sampler's draws: which of the texts of one seed
  int64_t alternatives = -1;  // most probable tokens to tell with each that is
                              // drawn; -1: no probabilities at all
};

struct DrawnToken {
  int64_t text = 0;  // as `join` numbered it
  int64_t token = 0;
  double probability = 0;  // of the model's own distribution: at temperature 1,
                           // without a penalty, of all tokens that may be drawn
  std::vector<Candidate> alternatives = {};  // of the same, the best first
};

// Texts join and leave between steps, and a step is shared by all that are
// there. What is drawn for a text is a function of its prompt and its sampler,
// but for what Decoder::step says of rounding.
//
// The model must outlive it and not change: on a CPU its matrices are packed
// once two texts share a step or a prompt is long (ops/packed_matrices), which
// takes their memory a second time; once for all that are given the same
// `packed`, of one thread.
class ContinuousBatch {
 public:
  // most: texts at once; rounds: of LSH attention, 0: the config's; tokens:
  // only those below it are drawn, 0: any.
  ContinuousBatch(const LanguageModel& model, int64_t most, int64_t rounds = 0,
                  int64_t tokens = 0,
                  std::shared_ptr<PackedMatrices> packed = nullptr);

  // A text whose prompt was read and whose first token was drawn.
  struct ReadText {
    JoiningText given;  // without the prompt
    Decoder decoder;
    std::vector<int64_t> tokens;
    Sampler sampler;
    DrawnToken first;
  };

  // Reads the prompt, in one pass by itself. Nothing changes here: where the
  // pass takes turns, texts may go on, join and leave in them. Throws Error for
  // a sampler's or a prompt's faults, and Interrupted.
  ReadText read(const JoiningText& text, const PrefillWatch& watch = {}) const;

  // The text goes on with the others. Returns its first token. Throws Error
  // when there is no room; nothing has changed then.
  DrawnToken join(ReadText text);
  DrawnToken join(const JoiningText& text, const PrefillWatch& watch = {});

  // The next token of every text, in no particular order. Texts may be as long
  // as positions go, the next token included: whoever joins sees to it.
  std::vector<DrawnToken> next();

  // The text goes, and its memory.
  void leave(int64_t text);

  int64_t size() const { return std::ssize(texts_); }
  int64_t most() const { return most_; }

 private:
  struct Text {
    int64_t number;
    std::vector<int64_t> tokens;  // the last one is not read yet
    Sampler sampler;
    JoiningText given;
  };

  void require_room() const;

  const LanguageModel& model_;
  int64_t most_;
  int64_t rounds_;
  int64_t tokens_;
  std::shared_ptr<PackedMatrices> packed_;
  Decoder decoder_;
  std::vector<Text> texts_;  // in the order of the decoder's rows
  int64_t joined_ = 0;
};

}  // namespace reformer
