// Sequences of which the beginning is given.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "reformer/generate/sampler.h"
#include "reformer/model/language_model.h"

namespace reformer {

struct CompletionConfig {
  SamplerConfig sampler;
  int64_t rounds = 0;  // of LSH attention; 0: the config's
  int64_t tokens = 0;  // only those below it are drawn; 0: any
};

//   given    [batch, n] int64 in [0, vocabulary)
//   returns  [batch, length], length > n: the given tokens, and drawn ones
//            after them, each row's by itself
//
// `go_on(made)` is asked before each draw, with how many tokens each row has
// been given so far; once it says no, the rest stays 0.
at::Tensor complete(const LanguageModel& model, const at::Tensor& given,
                    int64_t length, const CompletionConfig& config,
                    const std::function<bool(int64_t made)>& go_on);

}  // namespace reformer
