#include "reformer/config/choice.h"

#include "reformer/base/errors.h"

namespace reformer::choices {

std::string joined(const std::string_view* names, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) all += ", ";
    all += names[i];
  }
  return all;
}

std::size_t place_of(const std::string& name, std::string_view key,
                     const std::string_view* names, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (name == names[i]) return i;
  }
  throw Error(std::string(key) + ": one of " + joined(names, count) +
              " is required, got '" + name + "'");
}

}  // namespace reformer::choices
