#include "cli/screen/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "reformer/base/errors.h"
#include "reformer/base/printable.h"

namespace reformer::cli {
namespace {

// Names of files and members may command a terminal.
constexpr size_t kMostCharacters = 4000;

bool silent = false;

void print_aside(const std::string& text) {
  if (!silent) std::fputs(text.c_str(), stderr);
}

bool is_terminal(int file) { return isatty(file) == 1; }

}  // namespace

void be_silent() { silent = true; }
bool is_silent() { return silent; }

void print(const std::string& text) {
  if (silent) return;
  errno = 0;
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0;
  if (written) return;
  if (errno == EPIPE) throw OutputClosed();
  throw Error(std::string("cannot write to standard output: ") +
              std::strerror(errno));
}

Report::Report(bool json) : json_(json), updates_(is_terminal(STDERR_FILENO)) {}
Report::~Report() { clear_progress(); }

void Report::progress(const std::string& what) {
  clear_progress();
  const std::string shown = printable(what, kMostCharacters);
  print_aside(updates_ ? shown : shown + "\n");
  shown_ = true;
}

void Report::note(const std::string& sentence) {
  clear_progress();
  print_aside("note: " + printable(sentence, kMostCharacters) + "\n");
}

void Report::text(const std::string& table_lines) {
  clear_progress();
  if (!json_) {
    print(table_lines);
  } else if (!is_terminal(STDOUT_FILENO)) {  // else it would read twice there
    print_aside(table_lines);
  }
}

void Report::json(const std::string& line) {
  clear_progress();
  if (json_) print(line);
}

void Report::clear_progress() {
  // Erases to the line's end; not what others have written there.
  if (updates_ && shown_) print_aside("\r\033[K");
  shown_ = false;
}

}  // namespace reformer::cli
