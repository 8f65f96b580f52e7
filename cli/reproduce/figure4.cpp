#include "cli/reproduce/figure4.h"

#include <memory>

#include "cli/options/config_options.h"
#include "cli/reproduce/experiment.h"
#include "cli/reproduce/figure.h"

namespace reformer::cli {
namespace {

const std::vector<std::string> kVaried = {"model.attention", "lsh.rounds",
                                          "lsh.local_window"};

Variant lsh(const std::string& name, int64_t rounds, int64_t local_window) {
  return {name + std::to_string(rounds),
          {"model.attention=lsh", "lsh.rounds=" + std::to_string(rounds),
           "lsh.local_window=" + std::to_string(local_window)}};
}

// The local window is as long as a chunk. Full attention shares queries and
// keys too: it has the parameters of LSH attention.
std::vector<Variant> variants_of(const Config& config) {
  std::vector<Variant> variants = {
      {"full", {"model.attention=full_shared_qk", "lsh.local_window=0"}}};
  for (const int64_t rounds : {1, 2, 4, 8}) {
    variants.push_back(lsh("lsh-", rounds, 0));
  }
  for (const int64_t rounds : {1, 2, 4}) {
    variants.push_back(lsh("local+lsh-", rounds, config.lsh.chunk_length));
  }
  return variants;
}

void reproduce_figure4(const ExperimentOptions& options) {
  const auto settings = settings_of(options, kVaried);
  const Experiment experiment(options.out, settings,
                              variants_of(settings.config));
  const auto device = use_machine(options.device, options.threads);
  const auto series = trained_series("Figure 4", experiment, device);
  if (!series) return;
  write_figure(
      {options.out,
       options.name,
       json_lines_of(options.name, *series, settings.config.train.seed),
       panels_script(comparison(*series, "LSH rounds against full attention"),
                     /*columns=*/2),
       {1800, 750}});
}

}  // namespace

void add_reproduce_figure4(CLI::App& reproduce, Action& action) {
  auto& app = *reproduce.add_subcommand(
      "figure4",
      "1, 2, 4 and 8 hash rounds, and a local window with 1, 2 and 4, against "
      "full attention (as configs/figure4.json has it: meant for 10 minutes of "
      "an H200)");
  const auto options = std::make_shared<ExperimentOptions>("figure4");
  options->add_to(app);
  app.callback([options, &action] {
    action = [options] { reproduce_figure4(*options); };
  });
}

}  // namespace reformer::cli
