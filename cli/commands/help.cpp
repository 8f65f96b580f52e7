#include "cli/commands/help.h"

#include <string>

#include "cli/screen/output.h"

namespace reformer::cli {
namespace {

// Below `help` the names of all commands once more: each shows the help of its
// own, which `path` leads to.
void add_help_of(CLI::App& help, const CLI::App& command,
                 const std::string& path, Action& action) {
  for (const auto* sub :
       command.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub == &help) continue;
    auto& entry = *help.add_subcommand(sub->get_name(), sub->get_description());
    add_help_of(entry, *sub, path + " " + sub->get_name(), action);
  }
  help.callback([&help, &command, path, &action] {
    if (!help.get_subcommands().empty()) return;
    action = [&command, path] {
      print(command.get_formatter()->make_help(&command, path,
                                               CLI::AppFormatMode::Normal));
    };
  });
}

}  // namespace

void add_help(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand("help", "Show the help of a command");
  add_help_of(command, app, app.get_name(), action);
}

}  // namespace reformer::cli
