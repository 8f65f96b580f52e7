#include "reformer/data/image.h"

#include <algorithm>
#include <cctype>

#include "reformer/base/errors.h"
#include "reformer/data/jpeg.h"
#include "reformer/data/png.h"

namespace reformer {
namespace {

bool begins_with(std::span<const uint8_t> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](char a, uint8_t b) { return uint8_t(a) == b; });
}

std::mutex large_images;

}  // namespace

// The most of which a byte can tell: deflate a thousand of a PNG's bytes, each
// of 8 pixels of one bit; one bit of a JPEG an even block, 8 x 8 of every
// fourth pixel and row. Headers count as well: small files are never refused.
void require_possible_size(const char* format, int64_t width, int64_t height,
                           size_t bytes) {
  constexpr int64_t kPixelsOfByte = 8192 + 64;
  require(width > 0 && height > 0 && width <= kMostPixels / height, format,
          ": ", width, " x ", height, " pixels are too many");
  require(width * height / kPixelsOfByte <= static_cast<int64_t>(bytes), format,
          ": ", width, " x ", height, " pixels cannot be in ", bytes, " bytes");
}

DecodingTurn::DecodingTurn(int64_t width, int64_t height) {
  constexpr int64_t kLarge = int64_t{1} << 24;
  if (width * height > kLarge) alone_ = std::unique_lock(large_images);
}

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
