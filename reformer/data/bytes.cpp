#include "reformer/data/bytes.h"

#include <algorithm>
#include <vector>

#include "reformer/base/parallel.h"
#include "reformer/base/xxhash64.h"

namespace reformer {

// The hash of the blocks' hashes: blocks can be hashed at the same time, and a
// cache file has theirs.
std::string Bytes::content_hash() const {
  const int64_t blocks = (size() + kHashedBlock - 1) / kHashedBlock;
  std::vector<uint64_t> hashes(static_cast<size_t>(blocks));
  parallel_tasks(blocks, [&](int64_t block) {
    thread_local std::vector<uint8_t> bytes;
    const int64_t begin = block * kHashedBlock;
    bytes.resize(size_t(std::min(kHashedBlock, size() - begin)));
    read(begin, bytes);
    hashes[size_t(block)] = xxhash64(bytes.data(), bytes.size());
  });
  return xxhash64_hex(hashes.data(), 8 * hashes.size());
}

}  // namespace reformer
