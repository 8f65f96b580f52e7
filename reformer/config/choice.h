// Settings that are one of a few names: an enum, and its names in one place.
#pragma once

#include <cstddef>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>

namespace reformer {

// Of the enum E: the setting's `key`, and `names` in the order of E's values.
// Specialised beside each enum.
template <class E>
struct ChoiceNames;

namespace choices {
std::string joined(const std::string_view* names, std::size_t count);
// The place of `name` among them; throws Error, with the key and all of them.
std::size_t place_of(const std::string& name, std::string_view key,
                     const std::string_view* names, std::size_t count);
}  // namespace choices

// A setting of type E, which is compared as one and is given as one or by name.
template <class E>
class Choice {
 public:
  explicit(false) Choice(E value) : value_(value) {}
  // Throws Error for an unknown name, in which `key` is the setting.
  explicit(false) Choice(const std::string& name,
                         std::string_view key = ChoiceNames<E>::key)
      : value_(static_cast<E>(choices::place_of(name, key, Names::names,
                                                std::size(Names::names)))) {}
  explicit(false) Choice(const char* name) : Choice(std::string(name)) {}

  explicit(false) operator E() const { return value_; }

  std::string name() const {
    return std::string(Names::names[static_cast<std::size_t>(value_)]);
  }

  static std::string all_names() {  // "chunk, trailing"
    return choices::joined(Names::names, std::size(Names::names));
  }

 private:
  using Names = ChoiceNames<E>;

  E value_;
};

template <class E>
std::string name_of(E value) {
  return Choice<E>(value).name();
}

template <class E>
std::string name_of(const Choice<E>& choice) {
  return choice.name();
}

template <class E>
std::ostream& operator<<(std::ostream& out, const Choice<E>& choice) {
  return out << choice.name();
}

}  // namespace reformer
