// Stands in for ../png.cpp where CMake found no libpng.
#include "reformer/data/png.h"

#include "reformer/base/errors.h"

namespace reformer {
namespace {

[[noreturn]] void throw_missing() {
  throw Error(
      "this program was built without libpng; install libpng-dev and build "
      "again");
}

}  // namespace

Image decode_png(std::span<const uint8_t>) { throw_missing(); }

void write_png(const std::string&, const Image&) { throw_missing(); }

}  // namespace reformer
