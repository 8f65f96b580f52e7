// Outputs of an encoder-decoder for any number of sources: batches of like
// length, each a beam search or a sampling.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "reformer/generate/beam_search.h"
#include "reformer/generate/sampler.h"
#include "reformer/model/encoder_decoder.h"
#include "reformer/ops/packed_matrices.h"

namespace reformer {

struct TranslatorConfig {
  int64_t beam = 4;
  double length_penalty = 0.6;
  int64_t n_best = 1;
  int64_t end_token = 0;  // of sources and of outputs
  int64_t batch = 32;     // sources at a time
  int64_t more = 50;      // tokens that an output may have beyond
                          // those of its source
  int64_t rounds = 0;     // of LSH attention; 0: the config's
  std::optional<SamplerConfig> sampler = {};  // in place of a search: one draw
};

struct Translations {
  std::vector<std::vector<Hypothesis>> best;  // of each source, the best first
  int64_t tokens = 0;                         // of the best, with their ends
};

// The model must outlive it and not change: on a CPU its matrices are packed
// once (ops/packed_matrices), which takes their memory a second time. Threads
// may each have a translator of their own, of the same model too.
class Translator {
 public:
  // Throws Error for an impossible config.
  Translator(const EncoderDecoder& model, const TranslatorConfig& config);

  // Told of each source as soon as its output is known, in any order.
  using Done =
      std::function<void(std::size_t source, const std::vector<Hypothesis>&)>;

  // sources: without their end token; the output of an empty one is empty. Of a
  // source of more tokens than most_source() the first so many are read. What
  // is drawn for a source depends on the seed, on `first` plus its place, and
  // on its tokens alone. Throws Interrupted once `stop` is true.
  Translations translate(const std::vector<std::vector<int64_t>>& sources,
                         const Done& done = {},
                         const std::atomic<bool>* stop = nullptr,
                         int64_t first = 0) const;

  // Tokens that a source may have, without its end.
  int64_t most_source() const;

 private:
  void translate_batch(const std::vector<std::vector<int64_t>>& sources,
                       const std::vector<std::size_t>& chosen, int64_t first,
                       const Done& done) const;

  const EncoderDecoder& model_;
  TranslatorConfig config_;
  std::shared_ptr<PackedMatrices> packed_;
};

}  // namespace reformer
