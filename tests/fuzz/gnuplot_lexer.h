// What gnuplot makes of a script, by its manual and not by our own code.
#pragma once

#include <string>
#include <vector>

namespace reformer::fuzz {

struct GnuplotScript {
  // One for each statement and each line of data: its text, where '' stands
  // for every string.
  std::vector<std::string> statements;
  std::vector<std::string> strings;  // what gnuplot reads in them
  bool runs_commands = false;        // a backquote that is no text, or a !
};

// Lines end at newlines, whatever is open then; a backslash at a line's end
// joins the next; strings are '...' with '' for a quote, or "..." with
// backslashes; # begins a comment, ; ends a statement; `$name << END` begins
// data. A NUL ends it all.
GnuplotScript read_gnuplot(const std::string& script);

}  // namespace reformer::fuzz
