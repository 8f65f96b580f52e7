#include "reformer/data/image.h"

#include <algorithm>
#include <cctype>

#include "reformer/core/errors.h"
#include "reformer/data/jpeg.h"
#include "reformer/data/png.h"

namespace reformer {
namespace {

bool begins_with(std::span<const uint8_t> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](char a, uint8_t b) { return uint8_t(a) == b; });
}

}  // namespace

bool is_image_name(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return false;
  std::string ending = name.substr(dot);
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

Image decode_image(std::span<const uint8_t> bytes) {
  if (begins_with(bytes, "\x89PNG")) return decode_png(bytes);
  if (begins_with(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes);
  throw Error(bytes.empty() ? "it is empty" : "it is neither PNG nor JPEG");
}

}  // namespace reformer
