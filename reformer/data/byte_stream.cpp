#include "reformer/data/byte_stream.h"

#include <algorithm>

#include "reformer/base/errors.h"

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

std::string read_claimed(ByteStream& stream, size_t size) {
  constexpr size_t kPart = 1 << 16;
  std::string all;
  while (all.size() < size) {
    const size_t used = all.size();
    all.resize(std::min(size, std::max(2 * used, kPart)));
    const std::span<uint8_t> rest(reinterpret_cast<uint8_t*>(&all[used]),
                                  all.size() - used);
    const size_t n = read_up_to(stream, rest);
    if (n == rest.size()) continue;
    all.resize(used + n);
    break;
  }
  return all;
}

std::string read_all(ByteStream& stream, size_t most) {
  std::string all = read_claimed(stream, most);
  uint8_t one_more;
  require(all.size() < most || stream.read({&one_more, 1}) == 0, "more than ",
          most, " bytes");
  return all;
}

}  // namespace reformer
