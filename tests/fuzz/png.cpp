// data/png: the bytes as they are, and with the checksums that they need.
#include "reformer/data/png.h"

#include "tests/formats/image_writer.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

// Of RFC 2083, bit by bit.
uint32_t crc32_of(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
  }
  return ~crc;
}

uint32_t big_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

// Else libpng would refuse nearly every mutant before it looks inside.
std::string with_checksums(std::string png) {
  for (size_t at = 8; at + 12 <= png.size();) {
    const size_t length = big_endian(std::string_view(png).substr(at, 4));
    if (at + 12 + length > png.size()) break;
    const auto crc = crc32_of(std::string_view(png).substr(at + 4, 4 + length));
    for (size_t i = 0; i < 4; ++i) {
      png[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
    }
    at += 12 + length;
  }
  return png;
}

std::vector<std::string> seeds() {
  return {png_bytes({2, 1, {1, 2, 3, 4, 5, 6}}),
          png_bytes({5, 7, std::vector<uint8_t>(5 * 7 * 3, 9)}),
          transparent_png_bytes(1, 2, "abcdefgh"),
          transparent_png_bytes(2, 2, "abcdefgh")};
}

void execute(const std::string& input) {
  try_image(decode_png, input);
  try_image(decode_png, with_checksums(input));
}

const Registered registered({"png", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
