// PNG, through libpng.
#pragma once

#include <span>
#include <string>

#include "reformer/data/image.h"

namespace reformer {

// As decode_image, which knows that it is one. Throws Error also where the
// library was built without libpng.
Image decode_png(std::span<const uint8_t> bytes);

// Replaces `path` as a whole. Throws Error when it cannot be written.
void write_png(const std::string& path, const Image& image);

}  // namespace reformer
