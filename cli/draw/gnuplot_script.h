// Scripts of gnuplot that only this program's source can word.
//
// gnuplot runs commands of the shell in many places: lines that begin with !,
// `backquotes`, system(), names of files that begin with | or <. So a script is
// put together from three kinds of pieces, and from no string:
//
//   literals of the source     script << "set key top\n"
//   numbers                    script << 3.5
//   texts of anybody's         script << Quoted(title)
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace reformer::cli {

// A text that was known when this program was compiled.
class Literal {
 public:
  template <size_t size>
  consteval Literal(const char (&text)[size]) : text_(text, size - 1) {}

  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// One string of gnuplot's, which shows `text` as `printable` has it.
class Quoted {
 public:
  explicit Quoted(std::string_view text);

  const std::string& script() const { return script_; }

 private:
  std::string script_;  // 'it''s'
};

class Script {
 public:
  Script& operator<<(Literal words);
  Script& operator<<(const Quoted& text);
  Script& operator<<(const Script& other);
  Script& operator<<(double number);  // NaN where it is not finite
  template <std::integral Number>
  Script& operator<<(Number number) {
    return add(std::to_string(number));
  }

  bool empty() const { return text_.empty(); }
  // One way only: no string becomes a script.
  operator const std::string&() const { return text_; }

 private:
  Script& add(std::string_view text);

  std::string text_;
};

}  // namespace reformer::cli
