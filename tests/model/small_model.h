// A small model with everything in it, and one step of it, for the tests.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "reformer/model/language_model.h"

namespace reformer {

// Four layers, one of each attention, LSH with two rounds and a local window;
// dropout; lengths and windows that divide nothing.
Config small_config();

// One kind of attention in all layers of small_config.
Config small_config_of(const std::string& attention);

// Two layers of LSH, two sequences of 1024 positions, explicit chunks.
Config medium_config();

// [batch, length] int64 in [0, vocabulary), the same for the same seed.
at::Tensor random_tokens(const Config& config, uint64_t seed);
at::Tensor all_of(const at::Tensor& tokens);  // a loss mask of true

// Independent standard normal numbers, the same for the same seed.
at::Tensor normal_numbers(at::IntArrayRef sizes, uint64_t seed,
                          at::ScalarType type = at::kFloat);

// Adds noise to every parameter, so that no bias is 0 and no scale is 1.
void shake(SequenceModel& model, double size);

void copy_parameters(const SequenceModel& from, SequenceModel& to);

// Of a training step with dropout: what the pass of step 5 gives.
struct Step {
  LossSums sums;
  std::vector<NamedTensor> gradients;
};
Step step_of(LanguageModel& model, const at::Tensor& tokens,
             const at::Tensor& loss_mask);
Step step_of(LanguageModel& model, const at::Tensor& tokens);
Pass training_pass();
Pass evaluation_pass();

// One thread while it exists: attentions have working memory for each.
class OneThread {
 public:
  OneThread();
  ~OneThread();

 private:
  int before_;
};

// max |a - b| / max |b|, in float64; infinite for NaN or other sizes.
double relative_error(const at::Tensor& a, const at::Tensor& b);

// Each gradient, and the loss, within `most` relative to the other's.
void expect_same_step(const Step& step, const Step& reference, double most);

// The buckets of every LSH layer in this pass.
std::vector<at::Tensor> buckets_of(const LanguageModel& model,
                                   const at::Tensor& tokens, const Pass& pass);
bool same_buckets(const std::vector<at::Tensor>& a,
                  const std::vector<at::Tensor>& b);

}  // namespace reformer
