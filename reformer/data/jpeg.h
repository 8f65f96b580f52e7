// JPEG, through libjpeg.
#pragma once

#include <span>

#include "reformer/data/image.h"

namespace reformer {

// As decode_image, which knows that it is one. Throws Error also where the
// library was built without libjpeg.
Image decode_jpeg(std::span<const uint8_t> bytes);

}  // namespace reformer
