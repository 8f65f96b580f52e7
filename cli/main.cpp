// The `reformer` program: finds the subcommand, and catches every error once.
#include <csignal>
#include <cstdio>
#include <string>

#include "cli/commands/commands.h"
#include "cli/options/command_line.h"
#include "cli/process/before_libraries.h"
#include "cli/process/failure.h"
#include "cli/process/machine.h"
#include "cli/screen/output.h"
#include "reformer/base/note.h"
#include "reformer/base/printable.h"

namespace reformer::cli {
namespace {

constexpr int kWrongUsage = 2;
constexpr size_t kMostCharacters = 4000;

int run(int argc, char** argv) {
  CLI::App app("Reformers for sequences of up to millions of tokens.",
               "reformer");
  set_note_handler([](const std::string& sentence) {
    if (is_silent()) return;
    std::fprintf(stderr, "note: %s\n",
                 printable(sentence, kMostCharacters).c_str());
  });
  Action action;
  add_commands(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    print(version.what() + std::string("\n"));
    return 0;
  } catch (const CLI::ParseError& error) {
    return fail(kWrongUsage, advice_on(app, error));
  }
  if (!action) {  // `reformer`, `reformer bench`
    print(app.help());
    return 0;
  }
  action();
  return 0;
}

int run_and_report(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (...) {
    const Failure failure = failure_of_current_exception();
    return failure.message.empty() ? failure.status
                                   : fail(failure.status, failure.message);
  }
}

}  // namespace
}  // namespace reformer::cli

int main(int argc, char** argv) {
  reformer::cli::before_libraries();
  // A closed pipe then is an error of the write, which ends the run in order.
  std::signal(SIGPIPE, SIG_IGN);
  // So then is a file that outgrows the user's limit.
  std::signal(SIGXFSZ, SIG_IGN);
  reformer::cli::use_huge_pages();
  return reformer::cli::run_and_report(argc, argv);
}
