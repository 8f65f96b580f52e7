// Images in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace reformer {

struct Image {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> rgb;  // [height, width, 3]
};

// What no image of a data set exceeds, but a damaged header may.
inline constexpr int64_t kMostPixels = int64_t{1} << 27;

// Throws Error unless a file of so many bytes can hold so many pixels, at most
// kMostPixels: before memory is taken for them. `format` begins the message.
void require_possible_size(const char* format, int64_t width, int64_t height,
                           size_t bytes);

// Held while an image is decoded. Those of more than 2^24 pixels wait for each
// other: a gigabyte for each of many threads could be more than there is.
class DecodingTurn {
 public:
  DecodingTurn(int64_t width, int64_t height);

 private:
  std::unique_lock<std::mutex> alone_;
};

// Names of files that are taken for images: .png, .jpg, .jpeg.
bool is_image_name(const std::string& name);

// A PNG or a JPEG, by its first bytes, not by its name. Grey becomes RGB,
// transparent parts are laid on black. Throws Error with the reason for what is
// neither, is damaged, cut short or larger than kMostPixels.
Image decode_image(std::span<const uint8_t> bytes);

// The largest square in the middle, each of size * size pixels the mean of what
// it covers (rounded to nearest, halves up).
Image square_image(const Image& image, int64_t size);

}  // namespace reformer
