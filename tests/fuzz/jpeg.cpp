// data/jpeg.
#include "reformer/data/jpeg.h"

#include "tests/formats/image_writer.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

std::vector<std::string> seeds() {
  const Image small{2, 1, {1, 2, 3, 4, 5, 6}};
  const Image large{17, 9, std::vector<uint8_t>(17 * 9 * 3, 77)};
  return {jpeg_bytes(small), jpeg_bytes(large),
          jpeg_bytes(large, /*grey=*/true),
          progressive_jpeg_bytes(large, /*more=*/1)};
}

void execute(const std::string& input) { try_image(decode_jpeg, input); }

const Registered registered({"jpeg", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
