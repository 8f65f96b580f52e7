// Pictures in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace reformer {

struct Image {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> rgb;  // [height, width, 3]
};

// What no picture of a data set exceeds, but a damaged header may.
inline constexpr int64_t kMostPixels = int64_t{1} << 27;

// Names of files that are taken for pictures: .png, .jpg, .jpeg.
bool is_image_name(const std::string& name);

// A PNG or a JPEG, by its first bytes, not by its name. Grey becomes RGB,
// transparent parts are laid on black. Throws Error with the reason for what is
// neither, is damaged, cut short or larger than kMostPixels.
Image decode_image(std::span<const uint8_t> bytes);

// The largest square in the middle, each of size * size pixels the mean of what
// it covers (rounded to nearest, halves up).
Image square_image(const Image& image, int64_t size);

}  // namespace reformer
