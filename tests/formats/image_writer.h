// Images for the tests to read.
#pragma once

#include <string>

#include "reformer/data/image.h"

namespace reformer {

// 3 colours a pixel, or with `grey` the first of them alone. Quality 100.
std::string jpeg_bytes(const Image& image, bool grey = false);

// Progressive: in several scans, of which the first comes `more` times again.
std::string progressive_jpeg_bytes(const Image& image, int more);

std::string png_bytes(const Image& image);

// 4 or 2 values a pixel: colours or grey, and how opaque it is.
std::string transparent_png_bytes(int64_t width, int64_t height,
                                  const std::string& values);

}  // namespace reformer
