// A file that is read at given places.
#pragma once

#include <cstdint>
#include <string>

namespace reformer {

// Every function throws Error with the path and the system's reason.
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

}  // namespace reformer
