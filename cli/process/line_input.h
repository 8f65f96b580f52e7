// Lines of standard input, for a conversation.
#pragma once

#include <optional>
#include <string>

namespace reformer::cli {

// Where people type (standard input and output are terminals) each line is
// asked for by "> ", and a Ctrl-C there is answered by how to leave. A signal
// that wishes the program to stop, or a Ctrl-C elsewhere, ends the input.
class LineInput {
 public:
  LineInput();

  // Without its end; none after the last. Throws Error where standard input
  // cannot be read.
  std::optional<std::string> next();

  bool typed() const { return typed_; }

 private:
  bool wait();
  bool fill();
  std::string taken(size_t n, size_t with_end);

  bool typed_;
  bool at_end_ = false;
  std::string buffer_;  // read, and not asked for yet
};

}  // namespace reformer::cli
