// What every decoded image fulfils.
#pragma once

#include <span>
#include <string>

#include "reformer/base/errors.h"
#include "reformer/data/image.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {

// Decodes it, or lets it be refused.
inline void try_image(Image (*decode)(std::span<const uint8_t>),
                      const std::string& bytes) {
  Image image;
  try {
    image =
        decode({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  } catch (const Error&) {
    return;
  }
  law(image.width > 0 && image.height > 0, "an image has pixels");
  law(image.rgb.size() == size_t(3 * image.width * image.height),
      "an image has three bytes for each pixel");
  law(square_image(image, 3).rgb.size() == 27, "a square is of its size");
}

}  // namespace reformer::fuzz
