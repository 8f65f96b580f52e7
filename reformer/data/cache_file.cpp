#include "reformer/data/cache_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "reformer/core/errors.h"
#include "reformer/core/xxhash64.h"

namespace reformer {
namespace {

constexpr char kMagic[8] = {'r', 'f', 'c', 'a', 'c', 'h', 'e', '1'};
constexpr int64_t kHeaderBytes = 4096;  // so that the payload begins a page
// Of what was read; the system maps as much again around it.
constexpr int64_t kResidentBytes = 32 << 20;

int64_t block_count(int64_t payload_bytes) {
  return (payload_bytes + kCacheBlock - 1) / kCacheBlock;
}

int64_t file_bytes_of(const CacheHeader& header) {
  return kHeaderBytes + header.payload_bytes + header.label_bytes +
         8 * block_count(header.payload_bytes);
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

bool is_header_of(const CacheHeader& header, uint64_t signature,
                  int64_t file_bytes) {
  return std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 &&
         header.hash == hash_of(header) && header.signature == signature &&
         file_bytes_of(header) == file_bytes;
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

CacheWriter::CacheWriter(const std::string& path, uint64_t signature)
    : file_(path), signature_(signature) {
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
  header.signature = signature_;
  header.payload_bytes = written_;
  header.label_bytes = static_cast<int64_t>(labels.size());
  header.skipped = skipped;
  header.tail_hash = xxhash64(tail.data(), tail.size());
  header.hash = hash_of(header);
  file_.write(0, &header, sizeof header);
  file_.commit();
}

std::shared_ptr<const CacheFile> CacheFile::open(const std::string& path,
                                                 uint64_t signature) {
  const Descriptor file(path);
  struct stat found {};
  CacheHeader header{};
  if (file.number() < 0 || fstat(file.number(), &found) != 0 ||
      pread(file.number(), &header, sizeof header, 0) != sizeof header ||
      !is_header_of(header, signature, found.st_size)) {
    return nullptr;
  }
  void* map = mmap(nullptr, static_cast<size_t>(found.st_size), PROT_READ,
                   MAP_SHARED, file.number(), 0);
  require(map != MAP_FAILED, "cannot map ", path, ": ", std::strerror(errno));
  const std::shared_ptr<CacheFile> cache(
      new CacheFile(path, header, static_cast<const uint8_t*>(map)));
  return cache->read_tail() ? cache : nullptr;
}

CacheFile::CacheFile(const std::string& path, const CacheHeader& header,
                     const uint8_t* map)
    : path_(path),
      header_(header),
      map_(map),
      hashes_(static_cast<size_t>(block_count(header.payload_bytes))),
      checked_(new std::atomic<bool>[hashes_.size()]()) {}

CacheFile::~CacheFile() {
  munmap(const_cast<uint8_t*>(map_), static_cast<size_t>(file_bytes()));
}

int64_t CacheFile::file_bytes() const { return file_bytes_of(header_); }
const uint8_t* CacheFile::payload() const { return map_ + kHeaderBytes; }

bool CacheFile::read_tail() {
  const auto* labels =
      reinterpret_cast<const char*>(payload()) + header_.payload_bytes;
  labels_.assign(labels, static_cast<size_t>(header_.label_bytes));
  std::memcpy(hashes_.data(), labels + header_.label_bytes, 8 * hashes_.size());
  const std::string tail = tail_of(labels_, hashes_);
  return xxhash64(tail.data(), tail.size()) == header_.tail_hash;
}

std::string CacheFile::content_hash() const {
  return xxhash64_hex(tail_of(labels_, hashes_));
}

void CacheFile::check_block(int64_t block) const {
  if (checked_[block]) return;
  const int64_t begin = block * kCacheBlock;
  const int64_t bytes = std::min(kCacheBlock, size() - begin);
  // One request to the disk instead of one for each page.
  madvise(const_cast<uint8_t*>(payload() + begin), size_t(bytes),
          MADV_WILLNEED);
  require(xxhash64(payload() + begin, size_t(bytes)) == hashes_[block], path_,
          ": damaged at byte ", begin,
          " of what was decoded; remove the file, and it is decoded anew");
  checked_[block] = true;
  touched_ += bytes;
}

void CacheFile::read(int64_t begin, std::span<uint8_t> out) const {
  if (out.empty()) return;
  const int64_t end = begin + static_cast<int64_t>(out.size());
  for (int64_t block = begin / kCacheBlock; block * kCacheBlock < end;
       ++block) {
    check_block(block);
  }
  std::memcpy(out.data(), payload() + begin, out.size());
  touched_ += static_cast<int64_t>(out.size());
  // The system keeps the pages; they no longer count as ours.
  if (touched_ > kResidentBytes) {
    touched_ = 0;
    madvise(const_cast<uint8_t*>(map_), size_t(file_bytes()), MADV_DONTNEED);
  }
}

}  // namespace reformer
