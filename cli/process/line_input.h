// Lines of standard input, for a conversation or as they come, or of a file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace reformer::cli {

// Where people type (standard input and output are terminals) each line is
// asked for by "> ", and a Ctrl-C there is answered by how to leave. A signal
// that wishes the program to stop, or a Ctrl-C elsewhere, ends the input.
class LineInput {
 public:
  LineInput();

  // Of a file. Throws Error that names it where it cannot be opened.
  explicit LineInput(const std::string& path);
  ~LineInput();
  LineInput(const LineInput&) = delete;
  LineInput& operator=(const LineInput&) = delete;

  // Without its end; none after the last. Throws Error where it cannot be read.
  std::optional<std::string> next();

  // Waits for one line, and takes up to `most` that are there by then; none
  // after the last.
  std::vector<std::string> next_lines(std::size_t most);

  bool typed() const { return typed_; }

 private:
  bool wait();
  bool fill();
  std::string taken(size_t n, size_t with_end);

  bool is_ready() const;

  int file_;
  std::string name_;
  bool typed_;
  bool at_end_ = false;
  std::string buffer_;  // read, and not asked for yet
};

}  // namespace reformer::cli
