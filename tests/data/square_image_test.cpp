#include <gtest/gtest.h>

#include <algorithm>

#include "reformer/base/philox.h"
#include "reformer/data/image.h"

namespace reformer {
namespace {

Image noise(int64_t width, int64_t height) {
  Image image{width, height, {}};
  for (int64_t i = 0; i < width * height * 3; ++i) {
    const auto bits = philox({7, 7}, {static_cast<uint32_t>(i), 0, 0, 0});
    image.rgb.push_back(static_cast<uint8_t>(bits[0]));
  }
  return image;
}

int pixel(const Image& image, int64_t x, int64_t y, int64_t channel) {
  return image.rgb[size_t((y * image.width + x) * 3 + channel)];
}

// The slow reference: every pixel of the middle square becomes size * size
// small ones, and each target pixel is the mean of side * side of those.
Image plain_square(const Image& image, int64_t size) {
  const int64_t side = std::min(image.width, image.height);
  const int64_t left = (image.width - side) / 2;
  const int64_t top = (image.height - side) / 2;
  Image square{size, size, {}};
  for (int64_t y = 0; y < size; ++y) {
    for (int64_t x = 0; x < size; ++x) {
      for (int64_t channel = 0; channel < 3; ++channel) {
        int64_t sum = 0;
        for (int64_t v = y * side; v < (y + 1) * side; ++v) {
          for (int64_t u = x * side; u < (x + 1) * side; ++u) {
            sum += pixel(image, left + u / size, top + v / size, channel);
          }
        }
        const int64_t area = side * side;
        square.rgb.push_back(
            static_cast<uint8_t>((2 * sum + area) / (2 * area)));
      }
    }
  }
  return square;
}

TEST(SquareImage, EqualsItsSlowReference) {
  for (const auto& [width, height] :
       {std::pair{1, 1}, {5, 5}, {7, 3}, {3, 7}, {33, 20}, {20, 34}}) {
    for (const int64_t size : {1, 2, 5, 7, 16}) {
      const auto image = noise(width, height);
      const auto square = square_image(image, size);
      EXPECT_EQ(square.width, size);
      EXPECT_EQ(square.height, size);
      EXPECT_EQ(square.rgb, plain_square(image, size).rgb)
          << width << " x " << height << " to " << size;
    }
  }
}

TEST(SquareImage, OfItsOwnSizeIsItself) {
  const auto image = noise(64, 64);
  EXPECT_EQ(square_image(image, 64).rgb, image.rgb);
}

TEST(SquareImage, TakesTheMiddle) {
  Image image = noise(9, 3);
  const auto before = square_image(image, 3);
  for (int64_t y = 0; y < 3; ++y) {
    for (const int64_t x : {0, 1, 2, 6, 7, 8}) {
      image.rgb[size_t((y * 9 + x) * 3)] ^= 0xff;
    }
  }
  EXPECT_EQ(square_image(image, 3).rgb, before.rgb);
}

TEST(SquareImage, OneColourStaysThatColour) {
  Image image{37, 53, std::vector<uint8_t>(37 * 53 * 3, 201)};
  for (const uint8_t value : square_image(image, 11).rgb) {
    EXPECT_EQ(value, 201);
  }
}

TEST(ImageName, EndsInPngOrJpegInAnyCase) {
  for (const char* name : {"a.png", "x/y.JPEG", "z.Jpg"}) {
    EXPECT_TRUE(is_image_name(name)) << name;
  }
  for (const char* name : {"png", "a.png.txt", "a.gif", "x.jpg/readme"}) {
    EXPECT_FALSE(is_image_name(name)) << name;
  }
}

}  // namespace
}  // namespace reformer
