// Stands in for ../jpeg.cpp where CMake found no libjpeg.
#include "reformer/data/jpeg.h"

#include "reformer/base/errors.h"

namespace reformer {

Image decode_jpeg(std::span<const uint8_t>) {
  throw Error(
      "this program was built without libjpeg; install libjpeg-dev and build "
      "again");
}

}  // namespace reformer
