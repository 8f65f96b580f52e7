#include "tests/fuzz/gnuplot_lexer.h"

#include <sstream>

namespace reformer::fuzz {
namespace {

// One line, with what a backslash joined to it.
class Line {
 public:
  Line(const std::string& text, GnuplotScript& script)
      : text_(text), script_(script) {}

  void read() {
    while (at_ < text_.size() && text_[at_] != '#') {
      const char c = text_[at_++];
      if (c == '\'') {
        single_quoted();
      } else if (c == '"') {
        double_quoted();
      } else if (c == ';') {
        finish();
      } else {
        const bool starts = statement_.find_first_not_of(" \t") == npos;
        script_.runs_commands |= c == '`' || (c == '!' && starts);
        statement_ += c;
      }
    }
    finish();
  }

 private:
  static constexpr size_t npos = std::string::npos;

  void finish() {
    if (!statement_.empty()) script_.statements.push_back(statement_);
    statement_.clear();
  }

  void add_string(const std::string& string) {
    statement_ += "''";
    script_.strings.push_back(string);
  }

  void single_quoted() {
    std::string string;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\'' && text_.substr(at_ + 1, 1) != "'") break;
      if (text_[at_] == '\'') ++at_;
      string += text_[at_];
    }
    ++at_;  // the quote, or the end of the line, which closes it too
    add_string(string);
  }

  void double_quoted() {
    std::string string;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      script_.runs_commands |= text_[at_] == '`';
      string += text_[at_];
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) string += text_[++at_];
    }
    ++at_;
    add_string(string);
  }

  const std::string& text_;
  GnuplotScript& script_;
  size_t at_ = 0;
  std::string statement_;
};

// The word that ends the data which this line begins; empty: none.
std::string end_of_data(const std::string& line) {
  std::istringstream words(line);
  std::string name;
  std::string arrows;
  std::string end;
  words >> name >> arrows >> end;
  return name.starts_with("$") && arrows == "<<" ? end : "";
}

}  // namespace

GnuplotScript read_gnuplot(const std::string& script) {
  GnuplotScript result;
  std::istringstream lines(script.substr(0, script.find('\0')));
  for (std::string line; std::getline(lines, line);) {
    for (std::string next; line.ends_with("\\") && std::getline(lines, next);) {
      line.back() = ' ';
      line += next;
    }
    const std::string end = end_of_data(line);
    Line(line, result).read();
    if (end.empty()) continue;
    while (std::getline(lines, line) && line != end) {
      result.statements.push_back(line);
    }
  }
  return result;
}

}  // namespace reformer::fuzz
