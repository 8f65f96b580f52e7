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

// Draws are a function of (seed, row, how many were drawn before) and of the
// row's logits: the same seed gives the same text, whatever the other rows.
class Sampler {
 public:
  // Throws Error for a negative temperature or top_k, or top_p outside (0, 1].
  explicit Sampler(const SamplerConfig& config);

  //   logits   [batch, vocabulary]  float32 or float64, on any device: one
  //            small copy, which waits for a GPU
  //   returns  [batch] int64, on the CPU
  at::Tensor draw(const at::Tensor& logits);

 private:
  double uniform(int64_t row) const;

  SamplerConfig config_;
  uint64_t drawn_ = 0;
};

}  // namespace reformer
