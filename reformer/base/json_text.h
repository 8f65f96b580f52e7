// JSON that a stranger may have written: a config, a header, a line of metrics.
#pragma once

#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "reformer/base/errors.h"

namespace reformer {

// What is parsed is never deeper or wider: nlohmann-json writes and copies by
// recursion, and its ordered objects search all members for each new one.
struct JsonLimits {
  size_t depth = 64;        // of objects and arrays within each other
  size_t members = 10000;   // of one object
  size_t elements = 10000;  // of one array
  bool comments = false;
};

// Of text that is no JSON, or beyond the limits. The sentence names the place,
// in words of our own; whoever knows the file puts its name before it.
class JsonError : public Error {
 public:
  using Error::Error;
};

// As much of a text as a sentence bears, and whole characters of it: a
// stranger's may be of any size.
std::string shortened(const std::string& text);

// A value in one line of JSON, shortened; bytes that are no UTF-8 are replaced.
template <class Json>
std::string excerpt(const Json& value) {
  constexpr auto kReplace = nlohmann::detail::error_handler_t::replace;
  return shortened(value.dump(-1, ' ', /*ensure_ascii=*/false, kReplace));
}

// Follows a parser through the text and throws JsonError at the first fault.
class JsonWatch {
 public:
  explicit JsonWatch(const JsonLimits& limits) : limits_(limits) {}

  void open(bool object);
  void close();
  void key(const std::string& name);
  void value();

  // "model.layers", the keys on the way to where the parser is; may be empty.
  std::string place() const;

 private:
  struct Open {
    bool object;
    size_t count = 0;
    std::set<std::string> keys = {};
    std::string key = {};  // the last of them
  };

  JsonLimits limits_;
  std::vector<Open> open_;
};

// What nlohmann-json could not read: `byte` counts from 1.
[[noreturn]] void throw_no_json(const std::string& text, size_t byte,
                                const JsonWatch& watch);
[[noreturn]] void throw_no_number(const std::string& fault,
                                  const JsonWatch& watch);

// `text` as nlohmann::json or nlohmann::ordered_json. Throws JsonError for what
// is malformed, has a key twice (of which nlohmann-json would keep the last), a
// number that no double holds (1e400), a NUL (where it would stop reading) or
// is beyond the limits: before any of that is built.
template <class Json>
Json parse_json(const std::string& text, const JsonLimits& limits = {}) {
  using Event = typename Json::parse_event_t;
  JsonWatch watch(limits);
  const auto follow = [&](int, Event event, Json& at) {
    if (event == Event::object_start) watch.open(/*object=*/true);
    if (event == Event::array_start) watch.open(/*object=*/false);
    if (event == Event::object_end || event == Event::array_end) watch.close();
    if (event == Event::key)
      watch.key(at.template get_ref<const std::string&>());
    if (event == Event::value) watch.value();
    return true;
  };
  const size_t nul = text.find('\0');
  if (nul != text.npos) throw_no_json(text, nul + 1, watch);
  try {
    return Json::parse(text, follow, /*allow_exceptions=*/true,
                       limits.comments);
  } catch (const typename Json::parse_error& error) {
    throw_no_json(text, error.byte, watch);
  } catch (const typename Json::out_of_range& error) {
    throw_no_number(error.what(), watch);
  }
}

}  // namespace reformer
