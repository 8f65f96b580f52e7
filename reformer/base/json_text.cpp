#include "reformer/base/json_text.h"

#include <algorithm>

namespace reformer {
namespace {

template <class... Parts>
void require_json(bool condition, const Parts&... parts) {
  if (condition) return;
  std::ostringstream message;
  (message << ... << parts);
  throw JsonError(message.str());
}

std::string at_key(const std::string& place) {
  return place.empty() ? "" : " at the key '" + shortened(place) + "'";
}

}  // namespace

std::string shortened(const std::string& text) {
  constexpr size_t kMost = 60;
  if (text.size() <= kMost) return text;
  size_t end = kMost;
  const auto inside_a_character = [&] {
    return (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80;
  };
  while (end > kMost - 4 && inside_a_character()) --end;
  return text.substr(0, end) + "...";
}

void JsonWatch::open(bool object) {
  value();
  require_json(open_.size() < limits_.depth, "nested deeper than ",
               limits_.depth, " levels", at_key(place()));
  open_.push_back({object});
}

void JsonWatch::close() { open_.pop_back(); }

void JsonWatch::key(const std::string& name) {
  Open& object = open_.back();
  object.key = name;
  require_json(object.keys.insert(name).second, "the key '", shortened(name),
               "' is given twice");
  require_json(object.keys.size() <= limits_.members, "more than ",
               limits_.members, " members in one object");
}

void JsonWatch::value() {
  if (open_.empty() || open_.back().object) return;
  require_json(++open_.back().count <= limits_.elements, "more than ",
               limits_.elements, " elements in one list", at_key(place()));
}

std::string JsonWatch::place() const {
  std::string place;
  for (const Open& each : open_) {
    if (!each.key.empty()) place += (place.empty() ? "" : ".") + each.key;
  }
  return place;
}

void throw_no_json(const std::string& text, size_t byte,
                   const JsonWatch& watch) {
  const size_t before = std::min(byte > 0 ? byte - 1 : 0, text.size());
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(before);
  const auto line = 1 + std::count(text.begin(), end, '\n');
  const size_t start = before == 0 ? 0 : text.rfind('\n', before - 1) + 1;
  throw JsonError("no valid JSON at line " + std::to_string(line) +
                  ", column " + std::to_string(before - start + 1) +
                  at_key(watch.place()));
}

void throw_no_number(const std::string& fault, const JsonWatch& watch) {
  // "... parsing '1e400'"
  const size_t begin = fault.find('\'') + 1;
  const std::string number = fault.substr(begin, fault.rfind('\'') - begin);
  throw JsonError("the number " + shortened(number) + at_key(watch.place()) +
                  " is too large");
}

}  // namespace reformer
