#include "reformer/base/nearest_name.h"

#include <algorithm>
#include <numeric>

namespace reformer {

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);  // from a's first i characters
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j] ? 1 : 0);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

namespace {

std::string after_dots(const std::string& name) {
  return name.substr(name.rfind('.') + 1);  // npos + 1 is 0
}

}  // namespace

std::optional<std::string> nearest_name(const std::string& name,
                                        const std::vector<std::string>& known) {
  const size_t near = std::max<size_t>(name.size() / 3, 2);
  const bool dotted = name.find('.') != std::string::npos;
  std::optional<std::string> nearest;
  size_t least = 0;
  for (const auto& other : known) {
    const std::string end = after_dots(other);
    const size_t distance = edit_distance(name, dotted ? other : end);
    // Nothing is nearer than the same name elsewhere.
    const bool same_end = dotted && end == after_dots(name);
    if (!same_end && distance > near) continue;
    const size_t rank = same_end ? distance : distance + name.size();
    if (nearest && rank >= least) continue;
    nearest = other;
    least = rank;
  }
  return nearest;
}

std::string nearest_hint(const std::string& name,
                         const std::vector<std::string>& known) {
  const auto nearest = nearest_name(name, known);
  return nearest ? ", the nearest is " + *nearest : "";
}

}  // namespace reformer
