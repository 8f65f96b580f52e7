#include "cli/reproduce/figure3.h"

#include <memory>

#include "cli/options/config_options.h"
#include "cli/reproduce/experiment.h"
#include "cli/reproduce/figure.h"

namespace reformer::cli {
namespace {

const std::vector<std::string> kVaried = {"model.attention", "model.block",
                                          "model.successor_fraction"};

// The others differ from the first in one switch each; the last one's shared
// keys offer the values of their successors besides.
const std::vector<Variant> kVariants = {
    {"regular", {"model.attention=full", "model.block=residual"}},
    {"shared-qk", {"model.attention=full_shared_qk", "model.block=residual"}},
    {"reversible", {"model.attention=full", "model.block=reversible"}},
    {"successors",  // not in the paper
     {"model.attention=full_shared_qk", "model.block=residual",
      "model.successor_fraction=0.5"}}};

void reproduce_figure3(const ExperimentOptions& options) {
  const auto settings = settings_of(options, kVaried);
  const Experiment experiment(options.out, settings, kVariants);
  const auto device = use_machine(options.device, options.threads);
  const auto series = trained_series("Figure 3", experiment, device);
  if (!series) return;
  const auto left =
      comparison(*series, "Shared queries and keys",
                 {kVariants[0].name, kVariants[1].name, kVariants[3].name});
  const auto right = comparison(*series, "Reversible blocks",
                                {kVariants[0].name, kVariants[2].name});
  write_figure(
      {options.out,
       options.name,
       json_lines_of(options.name, *series, settings.config.train.seed),
       panels_script({left[0], right[0], left[1], right[1]}, /*columns=*/2),
       {1800, 1300}});
}

}  // namespace

void add_reproduce_figure3(CLI::App& reproduce, Action& action) {
  auto& app = *reproduce.add_subcommand(
      "figure3",
      "shared queries and keys, and reversible blocks, against an ordinary "
      "Transformer (as configs/figure3.json has it: meant for 7 minutes of an "
      "H200)");
  const auto options = std::make_shared<ExperimentOptions>("figure3");
  options->add_to(app);
  app.callback([options, &action] {
    action = [options] { reproduce_figure3(*options); };
  });
}

}  // namespace reformer::cli
