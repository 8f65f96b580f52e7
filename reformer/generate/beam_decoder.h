// Translating token by token: an encoder-decoder's own function for the
// hypotheses of a beam search.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/generate/beam_cache.h"
#include "reformer/generate/beam_search.h"
#include "reformer/model/encoder_decoder.h"

namespace reformer {

// What EncoderDecoder::logits computes from whole texts in evaluation, one
// token of every hypothesis at a time; LSH windows as Decoder has them. Sources
// are encoded once, and what cross-attention reads of them is projected once
// for all hypotheses of a sentence.
//
// Sentences do not influence each other. The model must outlive the decoder and
// not change.
class BeamDecoder {
 public:
  //   source   [sentences, length] int64 in [0, vocabulary), on the CPU
  //   lengths  [sentences]: how many tokens are a sentence's own, at least 1
  //   beam     hypotheses that a sentence has at most
  //   rounds   of LSH attention; 0: the config's
  BeamDecoder(const EncoderDecoder& model, const at::Tensor& source,
              const std::vector<int64_t>& lengths, int64_t beam,
              int64_t rounds = 0);

  // One more token of every row, after which
  //   logits  [rows, vocabulary]: those of the token after it
  //   top     [rows, 2 k + 1]: top_tokens of these, without their ever being in
  //           memory on a CPU
  // on the model's device. Nothing waits for it. Throws Error beyond the
  // model's last position.
  at::Tensor logits(const BeamRows& rows);
  at::Tensor top(const BeamRows& rows, int64_t k, int64_t besides);

 private:
  Streams step(const BeamRows& rows);
  void look_at_sources(const BeamRows& rows);

  const EncoderDecoder& model_;
  std::vector<int64_t> lengths_;
  BeamAncestors ancestors_;
  std::vector<BeamCache> caches_;   // of self-attention, a layer each
  std::vector<Projected> sources_;  // k, v of cross-attention, likewise
  std::vector<int64_t> sentences_;  // of the rows that of_rows_ speaks of
  BeamSources of_rows_;
  int64_t position_ = 0;
};

}  // namespace reformer
