#include "cli/generate/text_stream.h"

#include <algorithm>
#include <utility>

#include "reformer/base/utf8.h"

namespace reformer::cli {

TextStream::TextStream(std::vector<std::string> stops)
    : stops_(std::move(stops)) {}

// Of several in one piece the one that ends first, as if it came byte by byte;
// of those that end together the longest. Cuts it off.
bool TextStream::find_stop() {
  size_t first_end = std::string::npos;
  for (const auto& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t end = at + stop.size();
    const bool longer = stopped_by_ && stop.size() > stopped_by_->size();
    if (end < first_end || (end == first_end && longer)) {
      first_end = end;
      stopped_by_ = stop;
    }
  }
  if (!stopped_by_) return false;
  held_.resize(first_end - stopped_by_->size());
  return true;
}

// How many bytes at the end may be the beginning of a stop string.
size_t TextStream::beginning_of_stop() const {
  const std::string_view held = held_;
  size_t longest = 0;
  for (const auto& stop : stops_) {
    size_t n = std::min(stop.size() - 1, held.size());
    while (n > longest && !stop.starts_with(held.substr(held.size() - n))) --n;
    longest = std::max(longest, n);
  }
  return longest;
}

std::string TextStream::add(std::string_view piece) {
  if (stopped_by_) return {};
  held_ += piece;
  if (find_stop()) return finish();
  size_t shown = held_.size() - beginning_of_stop();
  shown -= cut_character_size(std::string_view(held_).substr(0, shown));
  auto rest = held_.substr(shown);
  held_.resize(shown);
  return std::exchange(held_, std::move(rest));
}

std::string TextStream::finish() {
  held_.resize(held_.size() - cut_character_size(held_));
  return std::exchange(held_, {});
}

}  // namespace reformer::cli
