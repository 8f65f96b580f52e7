#include "reformer/distributed/dealt_lines.h"

namespace reformer {
namespace {

// "5:hello3:abc"
std::string packed(const Lines& lines) {
  std::string text;
  for (const auto& line : lines) {
    text += std::to_string(line.size()) + ':' + line;
  }
  return text;
}

Lines unpacked(const std::string& text) {
  Lines lines;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find(':', at) + 1;
    const size_t size = std::stoull(text.substr(at, begin - at));
    lines.push_back(text.substr(begin, size));
    at = begin + size;
  }
  return lines;
}

}  // namespace

Lines dealt_lines(const Lines& lines, const World* world) {
  if (world == nullptr) return lines;
  const auto& ranks = world->ranks();
  Lines own;
  for (auto i = size_t(ranks.rank); i < lines.size(); i += size_t(ranks.size)) {
    own.push_back(lines[i]);
  }
  return own;
}

Lines gathered_lines(const Lines& own, size_t count, World* world) {
  if (world == nullptr) return own;
  std::vector<Lines> parts;
  for (const auto& text : world->control().gathered(packed(own))) {
    parts.push_back(unpacked(text));
  }
  Lines lines;
  for (size_t i = 0; i < count; ++i) {
    lines.push_back(parts[i % parts.size()].at(i / parts.size()));
  }
  return lines;
}

}  // namespace reformer
