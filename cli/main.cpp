// The `reformer` program: finds the subcommand, and catches every error once.
#include <c10/util/Exception.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "cli/commands/commands.h"
#include "cli/options/command_line.h"
#include "cli/process/before_libraries.h"
#include "cli/process/machine.h"
#include "cli/process/stop_signal.h"
#include "cli/screen/output.h"
#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/base/note.h"
#include "reformer/base/printable.h"

namespace reformer::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr size_t kMostCharacters = 4000;

// Sentences name files and settings, which may command a terminal.
int fail(int status, const std::string& message) {
  std::fprintf(stderr, "reformer: %s\n",
               printable(message, kMostCharacters).c_str());
  return status;
}

int run(int argc, char** argv) {
  CLI::App app("Reformers for sequences of up to millions of tokens.",
               "reformer");
  set_note_handler([](const std::string& sentence) {
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

// LibTorch's messages go on with stack traces.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// LibTorch has no type of its own for a CPU without memory, and for a GPU a
// paragraph.
std::string advice_on(const c10::Error& error) {
  const std::string message = first_line(error.what_without_backtrace());
  const std::string tried = "ried to allocate ";
  const size_t at = message.find(tried);
  if (at == std::string::npos) return message;
  const size_t from = at + tried.size();
  const std::string amount =
      message.substr(from, message.find(". ", from) - from);
  return std::string(message.starts_with("CUDA") ? "the GPU is " : "") +
         "out of memory: you tried to allocate " + amount +
         "; try shorter or fewer sequences";
}

int run_and_report(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const OutputClosed&) {
    return 0;
  } catch (const Interrupted&) {
    return status_of_stop();
  } catch (const Error& error) {
    return fail(kFailed, error.what());
  } catch (const std::bad_alloc&) {
    return fail(kFailed, "out of memory: try shorter or fewer sequences");
  } catch (const c10::Error& error) {
    return fail(kFailed, advice_on(error));
  } catch (const std::exception& error) {
    return fail(kFailed, first_line(error.what()));
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
