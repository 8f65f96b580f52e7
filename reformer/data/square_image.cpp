#include <algorithm>

#include "reformer/base/errors.h"
#include "reformer/data/image.h"

namespace reformer {
namespace {

// Along one axis, in units of 1 / size of a source pixel: target pixel t covers
// [t side, (t + 1) side) of the side * size units, source pixel s covers
// [s size, (s + 1) size). Whole numbers: sums of overlaps are exact.
struct Coverage {
  int64_t first;                 // source pixel
  std::vector<int64_t> overlap;  // of it and those after it; sums to side
};

std::vector<Coverage> coverages(int64_t side, int64_t size) {
  std::vector<Coverage> all;
  for (int64_t t = 0; t < size; ++t) {
    const int64_t begin = t * side;
    const int64_t end = begin + side;
    Coverage coverage{begin / size, {}};
    for (int64_t s = coverage.first; s * size < end; ++s) {
      coverage.overlap.push_back(std::min(end, (s + 1) * size) -
                                 std::max(begin, s * size));
    }
    all.push_back(std::move(coverage));
  }
  return all;
}

// A row of the square, [side, 3], narrowed to sums of [size, 3].
void narrow_row(const uint8_t* row, const std::vector<Coverage>& columns,
                int64_t* sums) {
  for (const auto& column : columns) {
    const uint8_t* pixel = row + column.first * 3;
    sums[0] = sums[1] = sums[2] = 0;
    for (const int64_t overlap : column.overlap) {
      for (int c = 0; c < 3; ++c) sums[c] += overlap * pixel[c];
      pixel += 3;
    }
    sums += 3;
  }
}

}  // namespace

// Columns first, then rows: each source row is read once for each target row
// that it reaches into.
Image square_image(const Image& image, int64_t size) {
  const int64_t side = std::min(image.width, image.height);
  require(side > 0 && size > 0, "an image of at least one pixel is required");
  const int64_t left = (image.width - side) / 2;
  const int64_t top = (image.height - side) / 2;
  const auto axis = coverages(side, size);
  const int64_t area = side * side;
  const int64_t width = size * 3;

  Image square{size, size, std::vector<uint8_t>(size_t(size * width))};
  std::vector<int64_t> narrowed(static_cast<size_t>(width));
  std::vector<int64_t> sums(static_cast<size_t>(width));
  uint8_t* out = square.rgb.data();
  for (const auto& rows : axis) {
    std::fill(sums.begin(), sums.end(), 0);
    int64_t y = top + rows.first;
    for (const int64_t overlap : rows.overlap) {
      narrow_row(&image.rgb[size_t((y++ * image.width + left) * 3)], axis,
                 narrowed.data());
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += overlap * narrowed[i];
    }
    for (const int64_t sum : sums) {
      *out++ = static_cast<uint8_t>((sum + area / 2) / area);
    }
  }
  return square;
}

}  // namespace reformer
