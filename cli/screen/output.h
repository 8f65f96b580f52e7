// What the program says: results on stdout, everything else on stderr.
#pragma once

#include <string>

namespace reformer::cli {

// The reader of stdout has gone (`reformer … | head`): nothing is left to do,
// and nothing went wrong.
class OutputClosed {};

// Nothing is said from here on but errors: of several ranks one speaks for all.
void be_silent();
bool is_silent();

// Writes to stdout at once: whoever reads has each line when it is known.
// Throws OutputClosed, or Error when it cannot be written (a full disk).
void print(const std::string& text);

// Where the results of a run go, and the word on what is being done now.
//
// The table for people goes to stdout, or with --json to stderr, while stdout
// gets the JSON lines. Progress goes to stderr: one line that updates on a
// terminal, a line each otherwise.
class Report {
 public:
  explicit Report(bool json);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void progress(const std::string& what);
  void note(const std::string& sentence);  // a line on stderr that stays
  void text(const std::string& table_lines);
  void json(const std::string& line);

 private:
  void clear_progress();

  bool json_;
  bool updates_;        // progress is one line
  bool shown_ = false;  // and stands there now
};

}  // namespace reformer::cli
