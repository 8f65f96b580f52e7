// A text that comes in pieces, as it can be shown meanwhile.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reformer::cli {

// Passes on what it is given, but for
//   - the first of the stop strings that is complete, and all after it, in
//     however many pieces it comes: what may become one is held back;
//   - a character of which bytes are missing: it is held back until they come,
//     and dropped where the text ends without them. Bytes that begin no
//     character pass as they are.
class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stops);

  // What may be shown now; nothing once it has stopped.
  std::string add(std::string_view piece);

  // What was held back, when no more pieces come.
  std::string finish();

  // The stop string that ended it, if one did.
  const std::optional<std::string>& stopped_by() const { return stopped_by_; }

 private:
  bool find_stop();
  size_t beginning_of_stop() const;

  std::vector<std::string> stops_;  // none is empty
  std::string held_;
  std::optional<std::string> stopped_by_;
};

}  // namespace reformer::cli
