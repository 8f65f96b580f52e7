#include "reformer/data/npy.h"

#include <charconv>
#include <string>

#include "reformer/base/errors.h"

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

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// What Python writes between the brackets after 'shape':; {} unless it is two
// numbers.
NpyHeader shape_in(const std::string& text) {
  const std::string key = "'shape':(";
  const size_t found = text.find(key);
  if (found == std::string::npos) return {};
  const char* end = text.data() + text.size();
  NpyHeader shape;
  const auto rows =
      std::from_chars(text.data() + found + key.size(), end, shape.rows);
  if (rows.ec != std::errc() || rows.ptr == end || *rows.ptr != ',') return {};
  const auto columns = std::from_chars(rows.ptr + 1, end, shape.columns);
  const bool two =
      columns.ec == std::errc() && columns.ptr != end && *columns.ptr == ')';
  return two ? shape : NpyHeader{};
}

}  // namespace

NpyHeader read_npy_header(ByteStream& stream) {
  constexpr size_t kMostText = 1 << 16;
  require(take(stream, 6) == "\x93NUMPY", "it is no .npy array");
  const bool first_version = take(stream, 2)[0] == 1;
  const size_t size = little_endian(take(stream, first_version ? 2 : 4));
  require(size <= kMostText, "it is no .npy array: a header of ", size,
          " bytes");
  std::string text = take(stream, size);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  const NpyHeader shape = shape_in(text);
  require(holds(text, "'descr':'|u1'") &&
              holds(text, "'fortran_order':False") && shape.rows > 0 &&
              shape.columns > 0,
          "an array of uint8 with two dimensions in C order is required, got ",
          text.substr(0, 100));
  return shape;
}

}  // namespace reformer
