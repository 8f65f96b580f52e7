// The bytes of a file or of standard input.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reformer/base/machine_memory.h"
#include "reformer/data/bytes.h"

namespace reformer {

// An ordinary file is read where and when it is asked for, and never held in
// memory whole. What cannot be read twice (standard input, a pipe) is read once
// and kept, up to a quarter of this machine's memory.
class ByteFile : public Bytes {
 public:
  // "-" is standard input. Throws Error with the path and the reason when it is
  // missing, a directory, a device (which may have no end), unreadable, empty,
  // or has more than `most_kept` bytes to keep.
  explicit ByteFile(const std::string& path,
                    int64_t most_kept = machine_memory() / 4);
  ~ByteFile() override;
  ByteFile(const ByteFile&) = delete;
  ByteFile& operator=(const ByteFile&) = delete;

  // Or "standard input".
  const std::string& path() const override { return path_; }
  int64_t size() const override { return size_; }

  // Throws Error when the file has become shorter since it was opened.
  void read(int64_t begin, std::span<uint8_t> out) const override;

 private:
  void open(const std::string& path, int64_t most_kept);
  void keep_all(int64_t most_kept);
  int64_t read_some(int64_t begin, std::span<uint8_t> out) const;
  [[noreturn]] void throw_unreadable(const std::string& reason) const;

  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
  std::vector<uint8_t> kept_;  // empty for an ordinary file
};

}  // namespace reformer
