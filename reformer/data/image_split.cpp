#include <cctype>
#include <string_view>

#include "reformer/data/decoded_images.h"

namespace reformer {
namespace {

// The letters at its beginning, in lower case.
std::string first_word(std::string_view text) {
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (!std::isalpha(byte)) break;
    word += static_cast<char>(std::tolower(byte));
  }
  return word;
}

}  // namespace

ImageSplit split_named(const std::string& name) {
  std::string_view rest = name;
  while (!rest.empty()) {
    const std::string word = first_word(rest);
    if (word == "train" || word == "training") return ImageSplit::kTrain;
    if (word == "val" || word == "valid" || word == "validation") {
      return ImageSplit::kValidation;
    }
    if (word == "test" || word == "testing") return ImageSplit::kTest;
    const size_t slash = rest.find('/');
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  return ImageSplit::kTrain;
}

}  // namespace reformer
