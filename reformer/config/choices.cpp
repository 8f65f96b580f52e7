#include "reformer/config/choices.h"

#include <algorithm>
#include <ostream>
#include <sstream>

namespace reformer {

AttentionKinds::AttentionKinds(const std::string& names, std::string_view key) {
  std::istringstream rest(names + ",");
  for (std::string name; std::getline(rest, name, ',');) {
    std::erase(name, ' ');
    kinds_.push_back(Choice<AttentionKind>(name, key));
  }
}

bool AttentionKinds::contains(AttentionKind kind) const {
  return std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end();
}

std::string AttentionKinds::names() const {
  std::string all;
  for (const auto kind : kinds_) {
    if (!all.empty()) all += ",";
    all += name_of(kind);
  }
  return all;
}

std::ostream& operator<<(std::ostream& out, const AttentionKinds& kinds) {
  return out << kinds.names();
}

}  // namespace reformer
