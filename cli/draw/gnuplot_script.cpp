#include "cli/draw/gnuplot_script.h"

#include <cmath>
#include <cstdio>

#include "reformer/base/printable.h"

namespace reformer::cli {

// Nothing but the quote itself means anything between single quotes, and only a
// line's end, which `printable` leaves none of, ends them too early.
Quoted::Quoted(std::string_view text) : script_("'") {
  for (const char letter : printable(text)) {
    script_.append(letter == '\'' ? 2 : 1, letter);
  }
  script_ += '\'';
}

Script& Script::operator<<(Literal words) { return add(words.text()); }

Script& Script::operator<<(const Quoted& text) { return add(text.script()); }

Script& Script::operator<<(const Script& other) { return add(other.text_); }

Script& Script::operator<<(double number) {
  char text[40] = "NaN";
  if (std::isfinite(number)) {
    std::snprintf(text, sizeof text, "%.15g", number);
  }
  return add(text);
}

Script& Script::add(std::string_view text) {
  text_.append(text);
  return *this;
}

}  // namespace reformer::cli
