#include "reformer/optim/optimizer.h"

#include "reformer/optim/adafactor.h"
#include "reformer/optim/adam.h"
#include "reformer/optim/muon.h"

namespace reformer {

std::unique_ptr<Optimizer> make_optimizer(
    const TrainConfig& config, const std::vector<Parameter>& parameters) {
  const OptimizerKind kind = config.optimizer;
  if (kind == OptimizerKind::kAdafactor) {
    return std::make_unique<Adafactor>(parameters);
  }
  const AdamSettings settings = {
      .beta1 = config.beta1,
      .beta2 = config.beta2,
      .epsilon = config.epsilon,
      .decay = kind == OptimizerKind::kAdam ? 0 : config.weight_decay};
  if (kind == OptimizerKind::kMuon) {
    return std::make_unique<Muon>(
        MuonSettings{.momentum = config.momentum,
                     .rounded = config.precision != Precision::kFloat32,
                     .adam = settings},
        parameters);
  }
  return std::make_unique<Adam>(settings, parameters);
}

}  // namespace reformer
