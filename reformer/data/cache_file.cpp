#include "reformer/data/cache_file.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "reformer/base/errors.h"
#include "reformer/base/xxhash64.h"
#include "reformer/data/private_files.h"

namespace reformer {
namespace {

constexpr char kMagic[8] = {'r', 'f', 'c', 'a', 'c', 'h', 'e', '2'};
constexpr int64_t kHeaderBytes = 4096;  // so that the payload begins a page

int64_t block_count(int64_t payload_bytes) {
  return payload_bytes / kCacheBlock + (payload_bytes % kCacheBlock != 0);
}

// Takes away what is there from what the header claims, never the other way
// round: sums of claims may overflow.
bool sizes_fill(const CacheHeader& header, int64_t file_bytes) {
  const int64_t data = file_bytes - kHeaderBytes;
  if (header.payload_bytes < 0 || header.payload_bytes > data) return false;
  const int64_t labels =
      data - header.payload_bytes - 8 * block_count(header.payload_bytes);
  return labels >= 0 && header.label_bytes == labels && header.skipped >= 0;
}

uint64_t hash_of(const CacheHeader& header) {
  return xxhash64(&header, offsetof(CacheHeader, hash));
}

std::string tail_of(const std::string& labels,
                    const std::vector<uint64_t>& hashes) {
  std::string tail = labels;
  tail.append(reinterpret_cast<const char*>(hashes.data()), 8 * hashes.size());
  return tail;
}

std::span<uint8_t> bytes_of(void* data, size_t size) {
  return {static_cast<uint8_t*>(data), size};
}

}  // namespace

CacheWriter::CacheWriter(const std::string& path, const CacheKey& key)
    : file_(path, kPrivateFile), key_(key) {
  block_.reserve(kCacheBlock);
}

int64_t CacheWriter::size() const {
  return written_ + static_cast<int64_t>(block_.size());
}

void CacheWriter::append(std::span<const uint8_t> payload) {
  while (!payload.empty()) {
    const size_t n = std::min(payload.size(), kCacheBlock - block_.size());
    block_.insert(block_.end(), payload.begin(), payload.begin() + n);
    payload = payload.subspan(n);
    if (block_.size() == kCacheBlock) write_block();
  }
}

void CacheWriter::write_block() {
  const auto size = static_cast<int64_t>(block_.size());
  hashes_.push_back(xxhash64(block_.data(), block_.size()));
  file_.write(kHeaderBytes + written_, block_.data(), size);
  written_ += size;
  block_.clear();
}

void CacheWriter::finish(const std::string& labels, int64_t skipped) {
  if (!block_.empty()) write_block();
  const std::string tail = tail_of(labels, hashes_);
  file_.write(kHeaderBytes + written_, tail.data(),
              static_cast<int64_t>(tail.size()));
  CacheHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key = key_;
  header.payload_bytes = written_;
  header.label_bytes = static_cast<int64_t>(labels.size());
  header.skipped = skipped;
  header.tail_hash = xxhash64(tail.data(), tail.size());
  header.hash = hash_of(header);
  file_.write(0, &header, sizeof header);
  file_.commit();
}

std::shared_ptr<const CacheFile> CacheFile::open(const std::string& path,
                                                 const CacheKey& key) {
  std::error_code none;
  if (!is_private_file(path) ||
      std::filesystem::file_size(path, none) < kHeaderBytes) {
    return nullptr;
  }
  const std::shared_ptr<CacheFile> cache(new CacheFile(path));
  return cache->read_header(key) && cache->read_tail() ? cache : nullptr;
}

bool CacheFile::read_header(const CacheKey& key) {
  file_.read(0, bytes_of(&header_, sizeof header_));
  return std::memcmp(header_.magic, kMagic, sizeof kMagic) == 0 &&
         header_.hash == hash_of(header_) && header_.key == key &&
         sizes_fill(header_, file_.size());
}

bool CacheFile::read_tail() {
  hashes_.resize(static_cast<size_t>(block_count(size())));
  checked_.reset(new std::atomic<bool>[hashes_.size()]());
  labels_.resize(static_cast<size_t>(header_.label_bytes));
  const int64_t begin = kHeaderBytes + size();
  file_.read(begin, bytes_of(labels_.data(), labels_.size()));
  file_.read(begin + header_.label_bytes,
             bytes_of(hashes_.data(), 8 * hashes_.size()));
  const std::string tail = tail_of(labels_, hashes_);
  return xxhash64(tail.data(), tail.size()) == header_.tail_hash;
}

std::string CacheFile::content_hash() const {
  return xxhash64_hex(tail_of(labels_, hashes_));
}

void CacheFile::check_block(int64_t block) const {
  if (checked_[block]) return;
  const int64_t begin = block * kCacheBlock;
  std::vector<uint8_t> bytes(size_t(std::min(kCacheBlock, size() - begin)));
  file_.read(kHeaderBytes + begin, bytes);
  require(xxhash64(bytes.data(), bytes.size()) == hashes_[block], path(),
          ": damaged at byte ", begin,
          " of what was decoded; remove the file, and it is decoded anew");
  checked_[block] = true;
}

void CacheFile::read(int64_t begin, std::span<uint8_t> out) const {
  if (out.empty()) return;
  const auto count = static_cast<int64_t>(out.size());
  require(begin >= 0 && begin <= size() && count <= size() - begin, path(),
          ": of ", size(), " bytes that were decoded, ", count, " from ", begin,
          " on are asked for; remove the file, and it is decoded anew");
  for (int64_t block = begin / kCacheBlock; block * kCacheBlock < begin + count;
       ++block) {
    check_block(block);
  }
  file_.read(kHeaderBytes + begin, out);
}

}  // namespace reformer
