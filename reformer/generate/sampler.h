// Choosing the next token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace reformer {

struct SamplerConfig {
  double temperature = 1;  // divides the logits; 0: always the most probable
  int64_t top_k = 0;       // only the k most probable tokens; 0: all
  double top_p = 1;        // of those, the fewest whose probabilities reach p
  uint64_t seed = 0;

  // Of tokens among a text's last `repetition_window` (0: all of it; prompts
  // count), positive logits are divided by the penalty and negative ones
  // multiplied, once however often they occur: Keskar et al. 2019 (CTRL,
  // Sec. 4.1), whose division alone would reward negative logits. 1: none.
  double repetition_penalty = 1;
  int64_t repetition_window = 64;
};

struct Candidate {
  int64_t token;
  double probability;
};

// What is drawn from: the tokens that the config leaves, their probabilities
// scaled to a sum of 1; the most probable first, the lower token of equals.
// Throws Error when a logit is NaN or +inf, or none is finite.
std::vector<Candidate> candidates(std::span<const double> logits,
                                  const SamplerConfig& config);

// Lowers the logits of the tokens among the last of `text`, as the config says.
// Tokens beyond the logits, which cannot be drawn, count for nothing.
void penalise_repetition(std::span<double> logits,
                         std::span<const int64_t> text,
                         const SamplerConfig& config);

// Draws are a function of (seed, row, how many were drawn before) and of the
// row's logits: the same seed gives the same text, whatever the other rows.
class Sampler {
 public:
  // Throws Error for a negative temperature or top_k, top_p outside (0, 1], a
  // penalty that is not above 0 or a negative window.
  explicit Sampler(const SamplerConfig& config);

  //   logits   [batch, vocabulary]  float32 or float64, on any device: one
  //            small copy, which waits for a GPU
  //   texts    [batch]: what came before, for the penalty; none: no penalty
  //   rows     [batch]: which rows these are, where some have left the batch;
  //            none: 0, 1, ...
  //   returns  [batch] int64, on the CPU
  at::Tensor draw(const at::Tensor& logits,
                  const std::vector<std::vector<int64_t>>& texts = {},
                  const std::vector<int64_t>& rows = {});

  // The same of one row, whose logits may be changed: `text` is what came
  // before, where there is a penalty.
  int64_t draw(std::span<double> logits, std::span<const int64_t> text,
               int64_t row);

 private:
  double uniform(int64_t row) const;

  SamplerConfig config_;
  uint64_t drawn_ = 0;
};

}  // namespace reformer
