#include "reformer/data/npy.h"

#include <regex>

#include "reformer/core/errors.h"

namespace reformer {
namespace {

// The next bytes as a string; Error where there are fewer.
std::string take(ByteStream& stream, size_t size) {
  std::string bytes(size, '\0');
  const size_t n =
      read_up_to(stream, {reinterpret_cast<uint8_t*>(bytes.data()), size});
  require(n == size, "it is no .npy array: it ends in its header");
  return bytes;
}

size_t little_endian(const std::string& bytes) {
  size_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return value;
}

}  // namespace

NpyHeader read_npy_header(ByteStream& stream) {
  constexpr size_t kMostText = 1 << 16;
  require(take(stream, 6) == "\x93NUMPY", "it is no .npy array");
  const bool first_version = take(stream, 2)[0] == 1;
  const size_t size = little_endian(take(stream, first_version ? 2 : 4));
  require(size <= kMostText, "it is no .npy array: a header of ", size,
          " bytes");
  const std::string text = take(stream, size);

  static const std::regex kBytes(R"('descr':\s*'[|<>=]?u1')");
  static const std::regex kCOrder(R"('fortran_order':\s*False)");
  static const std::regex kShape(R"('shape':\s*\((\d{1,12}), *(\d{1,9}),?\))");
  std::smatch shape;
  require(std::regex_search(text, kBytes) && std::regex_search(text, kCOrder) &&
              std::regex_search(text, shape, kShape),
          "an array of uint8 with two dimensions in C order is required, got ",
          text.substr(0, text.find_last_not_of(" \n") + 1));
  return {std::stoll(shape[1]), std::stoll(shape[2])};
}

}  // namespace reformer
