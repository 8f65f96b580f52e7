// A file of decoded bytes, written once and then mapped.
//
//   [0, 4096)   header: magic, signature of the source, sizes, hashes
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

#include "reformer/core/atomic_file.h"
#include "reformer/data/bytes.h"

namespace reformer {

inline constexpr int64_t kCacheBlock = kHashedBlock;

struct CacheHeader {
  char magic[8];
  uint64_t signature;
  int64_t payload_bytes;
  int64_t label_bytes;
  int64_t skipped;     // members that were left out as damaged
  uint64_t tail_hash;  // of labels and hashes
  uint64_t hash;       // of all fields above
};

// Until `finish` there is no file of that name, whenever the program is killed.
class CacheWriter {
 public:
  CacheWriter(const std::string& path, uint64_t signature);

  void append(std::span<const uint8_t> payload);
  void finish(const std::string& labels, int64_t skipped);

  int64_t size() const;  // of the payload so far

 private:
  void write_block();

  AtomicFile file_;
  uint64_t signature_;
  int64_t written_ = 0;         // of the payload
  std::vector<uint8_t> block_;  // what is not yet
  std::vector<uint64_t> hashes_;
};

// The payload. Mapped, since the file never changes: a new one takes its name.
// Of the pages that were read at most some 64 MiB stay resident. A block's hash
// is checked when it is first read: a start need not read the whole file.
class CacheFile : public Bytes {
 public:
  // Null where there is no whole cache file of this signature.
  static std::shared_ptr<const CacheFile> open(const std::string& path,
                                               uint64_t signature);
  ~CacheFile() override;

  const std::string& path() const override { return path_; }
  int64_t size() const override { return header_.payload_bytes; }
  // Throws Error where the bytes are not those that were written.
  void read(int64_t begin, std::span<uint8_t> out) const override;

  // Known since it was written; a block that differs is found when it is read.
  std::string content_hash() const override;

  const std::string& labels() const { return labels_; }
  int64_t skipped() const { return header_.skipped; }

 private:
  CacheFile(const std::string& path, const CacheHeader& header,
            const uint8_t* map);
  bool read_tail();
  void check_block(int64_t block) const;
  int64_t file_bytes() const;
  const uint8_t* payload() const;

  std::string path_;
  CacheHeader header_;
  const uint8_t* map_;  // the whole file
  std::string labels_;
  std::vector<uint64_t> hashes_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // by block
  mutable std::atomic<int64_t> touched_ = 0;      // since pages were let go
};

}  // namespace reformer
