// Images side by side.
#pragma once

#include <vector>

#include "reformer/data/image.h"

namespace reformer {

// Rows of images of one size, each of their pixels a square of `scale`, with
// white between and around them. Rows may have different lengths.
Image image_grid(const std::vector<std::vector<Image>>& rows, int64_t scale);

}  // namespace reformer
