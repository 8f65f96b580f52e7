#include "reformer/data/byte_stream.h"

#include <algorithm>

#include "reformer/core/errors.h"

namespace reformer {

size_t read_up_to(ByteStream& stream, std::span<uint8_t> out) {
  size_t filled = 0;
  while (filled < out.size()) {
    const size_t n = stream.read(out.subspan(filled));
    if (n == 0) break;
    filled += n;
  }
  return filled;
}

std::string read_all(ByteStream& stream, size_t most) {
  constexpr size_t kPart = 1 << 16;
  std::string all;
  while (true) {
    const size_t used = all.size();
    all.resize(std::max(2 * used, kPart));
    const std::span<uint8_t> rest(reinterpret_cast<uint8_t*>(&all[used]),
                                  all.size() - used);
    const size_t n = read_up_to(stream, rest);
    require(used + n <= most, "more than ", most, " bytes");
    if (n == rest.size()) continue;
    all.resize(used + n);
    return all;
  }
}

}  // namespace reformer
