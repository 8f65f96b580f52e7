#include "reformer/model/sequence_model.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/model/encoder_decoder.h"
#include "reformer/model/language_model.h"
#include "reformer/model/memory_limits.h"

namespace reformer {

SequenceModel::SequenceModel(const Config& config, const Placement& placement)
    : config_((check(config), require_memory_for_parameters(config, placement),
               config)),
      store_(static_cast<uint64_t>(config.train.seed), placement) {}

at::Tensor SequenceModel::here(const at::Tensor& x) const {
  return copied_to(x, placement().device);
}

at::Tensor SequenceModel::shifted(const at::Tensor& tokens) const {
  require(tokens.dim() == 2 && tokens.scalar_type() == at::kLong &&
              tokens.size(1) >= 1,
          "model: tokens must be [batch, length] int64, got sizes ",
          tokens.sizes());
  const auto start =
      at::full({tokens.size(0), 1}, start_token(), tokens.options());
  return at::cat({start, tokens.narrow(1, 0, tokens.size(1) - 1)}, 1);
}

void SequenceModel::zero_gradients() {
  for (auto& parameter : parameters()) {
    parameter.gradient().reset();
  }
}

std::unique_ptr<SequenceModel> make_model(const Config& config,
                                          const Placement& placement) {
  if (config.model.encoder_layers > 0) {
    return std::make_unique<EncoderDecoder>(config, placement);
  }
  return std::make_unique<LanguageModel>(config, placement);
}

}  // namespace reformer
