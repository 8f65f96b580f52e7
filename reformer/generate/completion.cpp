#include "reformer/generate/completion.h"

#include <ATen/ops/zeros.h>

#include <cassert>

#include "reformer/generate/decoder.h"

namespace reformer {

at::Tensor complete(const LanguageModel& model, const at::Tensor& given,
                    int64_t length, const CompletionConfig& config,
                    const std::function<bool(int64_t made)>& go_on) {
  const int64_t batch = given.size(0);
  const int64_t first = given.size(1);
  assert(first < length);
  const int64_t tokens =
      config.tokens > 0 ? config.tokens : model.config().model.vocabulary;
  auto all = at::zeros({batch, length}, at::kLong);
  all.narrow(1, 0, first).copy_(given);

  Sampler sampler(config.sampler);
  Decoder decoder(model, batch, config.rounds);
  auto logits = decoder.prefill(
      given, std::vector<int64_t>(static_cast<size_t>(batch), first));
  for (int64_t at = first; at < length && go_on(at - first); ++at) {
    const auto drawn = sampler.draw(logits.narrow(1, 0, tokens));
    all.select(1, at).copy_(drawn);
    if (at + 1 < length) logits = decoder.step(drawn);
  }
  return all;
}

}  // namespace reformer
