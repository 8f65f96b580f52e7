#include "cli/reproduce.h"

#include "cli/reproduce_table2.h"

namespace reformer::cli {

void add_reproduce(CLI::App& app, Action& action) {
  CLI::App& reproduce = *app.add_subcommand(
      "reproduce", "Run the paper's experiments, beside its figures");
  add_reproduce_table2(reproduce, action);
}

}  // namespace reformer::cli
