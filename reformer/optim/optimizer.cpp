#include "reformer/optim/optimizer.h"

#include "reformer/base/errors.h"
#include "reformer/optim/adafactor.h"
#include "reformer/optim/adam.h"
#include "reformer/optim/muon.h"

namespace reformer {

std::unique_ptr<Optimizer> make_optimizer(
    const TrainConfig& config, const std::vector<Parameter>& parameters) {
  const std::string& name = config.optimizer;
  if (name == "adafactor") return std::make_unique<Adafactor>(parameters);
  require(name == "adam" || name == "adamw" || name == "muon",
          "train.optimizer: adafactor, adam, adamw or muon is required, got '",
          name, "'");
  const AdamSettings settings = {
      .beta1 = config.beta1,
      .beta2 = config.beta2,
      .epsilon = config.epsilon,
      .decay = name == "adam" ? 0 : config.weight_decay};
  if (name == "muon") {
    return std::make_unique<Muon>(
        MuonSettings{.momentum = config.momentum,
                     .rounded = config.precision != "float32",
                     .adam = settings},
        parameters);
  }
  return std::make_unique<Adam>(settings, parameters);
}

}  // namespace reformer
