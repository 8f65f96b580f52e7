#include "reformer/data/image_grid.h"

#include <gtest/gtest.h>

namespace reformer {
namespace {

Image of_colour(uint8_t colour) {
  return {2, 3, std::vector<uint8_t>(2 * 3 * 3, colour)};
}

// Every pixel of the grid is that of the image which lies there, or white.
TEST(ImageGrid, LaysImagesInRowsWithWhiteBetween) {
  const auto grid =
      image_grid({{of_colour(1), of_colour(2)}, {of_colour(3)}}, /*scale=*/5);
  ASSERT_EQ(grid.width, 4 + 10 + 4 + 10 + 4);
  ASSERT_EQ(grid.height, 4 + 15 + 4 + 15 + 4);
  for (int64_t y = 0; y < grid.height; ++y) {
    for (int64_t x = 0; x < grid.width; ++x) {
      const bool first_row = y >= 4 && y < 19;
      const bool second_row = y >= 23 && y < 38;
      const bool first_column = x >= 4 && x < 14;
      const bool second_column = x >= 18 && x < 28;
      const int expected = first_row && first_column    ? 1
                           : first_row && second_column ? 2
                           : second_row && first_column ? 3
                                                        : 255;
      for (int64_t channel = 0; channel < 3; ++channel) {
        ASSERT_EQ(grid.rgb[size_t((y * grid.width + x) * 3 + channel)],
                  expected)
            << x << ", " << y;
      }
    }
  }
}

TEST(ImageGrid, APixelBecomesASquare) {
  Image image{2, 1, {10, 20, 30, 40, 50, 60}};
  const auto grid = image_grid({{image}}, /*scale=*/2);
  const auto pixel = [&](int64_t x, int64_t y) {
    return grid.rgb[size_t((y * grid.width + x) * 3 + 1)];
  };
  EXPECT_EQ(pixel(4, 4), 20);
  EXPECT_EQ(pixel(5, 5), 20);
  EXPECT_EQ(pixel(6, 4), 50);
  EXPECT_EQ(pixel(7, 5), 50);
}

}  // namespace
}  // namespace reformer
