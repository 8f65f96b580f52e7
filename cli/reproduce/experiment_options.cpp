#include "cli/reproduce/experiment_options.h"

#include "cli/options/config_options.h"
#include "reformer/config/config_library.h"

namespace reformer::cli {

ExperimentOptions::ExperimentOptions(const std::string& figure)
    : name(figure), out("runs/" + figure) {}

bool ExperimentOptions::give_settings() const {
  return quick || !data.empty() || steps > 0 || !assignments.empty() ||
         !lists.empty();
}

void ExperimentOptions::add_to(CLI::App& app) {
  app.add_option("--out", out,
                 "folder of its runs; what is trained is not trained again, "
                 "and without other options its settings hold")
      ->check(not_empty())
      ->take_last()
      ->type_name("DIR")
      ->capture_default_str();
  app.add_flag("--quick", quick,
               "a small model and short sequences (the config figures-quick): "
               "minutes on a CPU; without --data on a text of its own");
  app.add_option("--data", data, "a file, folder or archive of text")
      ->check(not_empty())
      ->take_last()
      ->type_name("PATH");
  const auto number = [&](const char* option, int64_t& value,
                          const std::string& help, int64_t most) {
    app.add_option(option, value, help)
        ->check(whole_number(1, most))
        ->take_last()
        ->type_name("N");
  };
  number("--steps", steps,
         "of each run [" + std::to_string(load_config(name).train.steps) +
             "; quick: " +
             std::to_string(load_config("figures-quick").train.steps) + "]",
         kMaxLength);
  number("--seeds", seeds,
         "runs of each kind, whose seeds follow train.seed [3]", kMaxSeeds);
  add_set_option(app, assignments);
  add_machine_options(app, device, threads);
}

}  // namespace reformer::cli
