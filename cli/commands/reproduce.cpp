#include "cli/commands/reproduce.h"

#include "cli/reproduce/figure3.h"
#include "cli/reproduce/figure4.h"
#include "cli/reproduce/figure5.h"
#include "cli/reproduce/table2.h"
#include "cli/reproduce/table4.h"

namespace reformer::cli {

void add_reproduce(CLI::App& app, Action& action) {
  CLI::App& reproduce = *app.add_subcommand(
      "reproduce", "Run the paper's experiments, beside its figures");
  add_reproduce_table2(reproduce, action);
  add_reproduce_table4(reproduce, action);
  add_reproduce_figure3(reproduce, action);
  add_reproduce_figure4(reproduce, action);
  add_reproduce_figure5(reproduce, action);
}

}  // namespace reformer::cli
