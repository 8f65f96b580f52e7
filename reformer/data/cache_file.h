// A file of decoded data, which is written once and read in place.
//
//   [0, 4096)   header: magic, key of the source, sizes, hashes
//   payload     the decoded bytes
//   labels      a few more, kept in memory by whoever opens it
//   hashes      XXH64 of each 256 KiB of the payload
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reformer/base/atomic_file.h"
#include "reformer/base/sha256.h"
#include "reformer/data/byte_file.h"
#include "reformer/data/bytes.h"

namespace reformer {

inline constexpr int64_t kCacheBlock = kHashedBlock;

// Of the source (path, names, sizes, times, first and last bytes) and the form.
using CacheKey = Sha256Digest;

struct CacheHeader {
  char magic[8];
  CacheKey key;
  int64_t payload_bytes;
  int64_t label_bytes;
  int64_t skipped;     // members that were left out as damaged
  uint64_t tail_hash;  // of labels and hashes
  uint64_t hash;       // of all fields above
};

// Until `finish` there is no file of that name, whenever the program is killed.
// Nobody but this user may read it: it holds what the source holds.
class CacheWriter {
 public:
  CacheWriter(const std::string& path, const CacheKey& key);

  void append(std::span<const uint8_t> payload);
  void finish(const std::string& labels, int64_t skipped);

  int64_t size() const;  // of the payload so far

 private:
  void write_block();

  AtomicFile file_;
  CacheKey key_;
  int64_t written_ = 0;         // of the payload
  std::vector<uint8_t> block_;  // what is not yet
  std::vector<uint64_t> hashes_;
};

// The payload, read where and when it is asked for. A block's hash is checked
// when it is first read: a start need not read the whole file.
class CacheFile : public Bytes {
 public:
  // Null where there is no whole cache file of this key, or it is not ours
  // alone to write (private_files.h). Nothing in the header is believed before
  // it fits the file's size.
  static std::shared_ptr<const CacheFile> open(const std::string& path,
                                               const CacheKey& key);

  const std::string& path() const override { return file_.path(); }
  int64_t size() const override { return header_.payload_bytes; }
  // Throws Error where the bytes are not those that were written.
  void read(int64_t begin, std::span<uint8_t> out) const override;

  // Known since it was written; a block that differs is found when it is read.
  std::string content_hash() const override;

  const std::string& labels() const { return labels_; }
  int64_t skipped() const { return header_.skipped; }

 private:
  explicit CacheFile(const std::string& path) : file_(path) {}
  bool read_header(const CacheKey& key);
  bool read_tail();
  void check_block(int64_t block) const;

  ByteFile file_;
  CacheHeader header_{};
  std::string labels_;
  std::vector<uint64_t> hashes_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // by block
};

}  // namespace reformer
