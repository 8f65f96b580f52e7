#include "reformer/data/image_grid.h"

#include <algorithm>
#include <cassert>

namespace reformer {
namespace {

constexpr int64_t kMargin = 4;  // pixels
constexpr uint8_t kWhite = 255;

void paste(const Image& image, int64_t scale, int64_t left, int64_t top,
           Image& grid) {
  for (int64_t y = 0; y < image.height * scale; ++y) {
    for (int64_t x = 0; x < image.width * scale; ++x) {
      const int64_t from = (y / scale * image.width + x / scale) * 3;
      const int64_t to = ((top + y) * grid.width + left + x) * 3;
      std::copy_n(image.rgb.begin() + from, 3, grid.rgb.begin() + to);
    }
  }
}

}  // namespace

Image image_grid(const std::vector<std::vector<Image>>& rows, int64_t scale) {
  assert(!rows.empty() && !rows[0].empty());
  size_t columns = 0;
  for (const auto& row : rows) columns = std::max(columns, row.size());
  const int64_t step_x = rows[0][0].width * scale + kMargin;
  const int64_t step_y = rows[0][0].height * scale + kMargin;
  Image grid{static_cast<int64_t>(columns) * step_x + kMargin,
             static_cast<int64_t>(rows.size()) * step_y + kMargin,
             {}};
  grid.rgb.assign(static_cast<size_t>(grid.width * grid.height * 3), kWhite);
  int64_t top = kMargin;
  for (const auto& row : rows) {
    int64_t left = kMargin;
    for (const auto& image : row) {
      paste(image, scale, left, top, grid);
      left += step_x;
    }
    top += step_y;
  }
  return grid;
}

}  // namespace reformer
