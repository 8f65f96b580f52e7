// data/cache_file: any header and contents, with or without right hashes.
#include <cstddef>
#include <cstring>

#include "reformer/base/xxhash64.h"
#include "reformer/data/cache_file.h"
#include "tests/fuzz/pieces.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"
#include "tests/io/file_support.h"

namespace reformer::fuzz {
namespace {

constexpr CacheKey kKey = {4, 2};
constexpr size_t kHeaderBytes = 4096;

// The first byte, bit by bit: what is put right.
enum Right : uint8_t { kMagic = 1, kSizes = 2, kTailHash = 4, kHash = 8 };

// Zeros between header and payload are left out of the input.
std::string seed_of(const std::string& payload, const std::string& labels) {
  const std::string path = scratch_folder("cache") + "/seed";
  {
    CacheWriter writer(path, kKey);
    writer.append(
        {reinterpret_cast<const uint8_t*>(payload.data()), payload.size()});
    writer.finish(labels, /*skipped=*/1);
  }
  const std::string bytes = bytes_of(path);
  return '\0' + bytes.substr(0, sizeof(CacheHeader)) +
         bytes.substr(kHeaderBytes);
}

std::vector<std::string> seeds() {
  std::vector<std::string> seeds = {seed_of("payload", "labels"),
                                    seed_of("x", "")};
  for (const uint8_t right : {kHash, kTailHash}) {
    seeds.push_back(seeds[0]);
    seeds.back()[0] = static_cast<char>(right | kHash);
  }
  seeds.push_back(seeds[0]);
  seeds.back()[0] = 15;
  return seeds;
}

void put_right(CacheHeader& header, const std::string& contents,
               uint8_t right) {
  const auto size = std::ssize(contents);
  if (right & kMagic) {
    static const std::string valid = seed_of("x", "");
    std::memcpy(header.magic, valid.data() + 1, sizeof header.magic);
    header.key = kKey;
  }
  if (right & kSizes && size >= 8) {  // one block
    header.label_bytes &= 15;
    header.payload_bytes = size - 8 - header.label_bytes;
  }
  const int64_t at = header.payload_bytes;
  if (right & kTailHash && at >= 0 && at <= size) {
    header.tail_hash =
        xxhash64(contents.data() + at, static_cast<size_t>(size - at));
  }
  if (right & kHash) {
    header.hash = xxhash64(&header, offsetof(CacheHeader, hash));
  }
}

void execute(const std::string& input) {
  Pieces pieces(input);
  const uint8_t right = pieces.byte();
  std::string bytes = pieces.rest();
  CacheHeader header{};
  if (bytes.size() >= sizeof header) {
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::string contents = bytes.substr(sizeof header);
    put_right(header, contents, right);
    bytes.assign(reinterpret_cast<const char*>(&header), sizeof header);
    bytes.resize(kHeaderBytes, '\0');
    bytes += contents;
  }
  const auto cache = CacheFile::open(
      put_file(scratch_folder("cache") + "/cache", bytes), kKey);
  if (!cache) return;
  law(cache->size() >= 0 && cache->size() <= std::ssize(bytes),
      "the payload is in the file");
  law(cache->labels().size() <= bytes.size(), "the labels are in the file");
  std::vector<uint8_t> payload(static_cast<size_t>(cache->size()));
  cache->read(0, payload);
}

const Registered registered({"cache", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
