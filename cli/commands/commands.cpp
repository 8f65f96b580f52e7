#include "cli/commands/commands.h"

#include <string>

#include "cli/commands/average.h"
#include "cli/commands/bench.h"
#include "cli/commands/bleu.h"
#include "cli/commands/eval.h"
#include "cli/commands/export.h"
#include "cli/commands/generate.h"
#include "cli/commands/help.h"
#include "cli/commands/import.h"
#include "cli/commands/info.h"
#include "cli/commands/plot.h"
#include "cli/commands/reproduce.h"
#include "cli/commands/serve.h"
#include "cli/commands/settings.h"
#include "cli/commands/tokenizer.h"
#include "cli/commands/train.h"
#include "cli/commands/translate.h"
#include "reformer/version.h"

namespace reformer::cli {

void add_commands(CLI::App& app, Action& action) {
  app.formatter(help_formatter());  // before the commands, which inherit it
  app.set_version_flag("--version", std::string("reformer ") + version());
  add_train(app, action);
  add_eval(app, action);
  add_export(app, action);
  add_import(app, action);
  add_average(app, action);
  add_generate(app, action);
  add_serve(app, action);
  add_translate(app, action);
  add_bleu(app, action);
  add_tokenizer(app, action);
  add_plot(app, action);
  add_info(app, action);
  add_settings(app, action);
  add_bench(app, action);
  add_reproduce(app, action);
  add_help(app, action);
}

}  // namespace reformer::cli
