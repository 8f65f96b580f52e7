// A file that is read at given places.
#pragma once

#include <cstdint>
#include <string>

#include "reformer/base/errors.h"

namespace reformer {

// A file may be perfectly good and yet not be read: for want of permission, by
// a fault of the disk, or because a newer program wrote it. Nobody is to be
// told to remove it.
class Unreadable : public Error {
 public:
  using Error::Error;
};

// Every function throws Error with the path and the system's reason:
// Unreadable, unless the file is missing, no file, or too short.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }

  void read(int64_t offset, void* data, int64_t size) const;
  std::string read(int64_t offset, int64_t size) const;

 private:
  std::string path_;
  int descriptor_;
  int64_t size_;
};

// All of a file.
std::string read_text(const std::string& path);

}  // namespace reformer
