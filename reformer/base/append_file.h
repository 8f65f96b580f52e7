// A file that grows by whole pieces.
#pragma once

#include <string>

namespace reformer {

class AppendFile {
 public:
  enum class Mode { kContinue, kCreateNew };

  // Throws Error when `path` cannot be opened, or exists under kCreateNew.
  AppendFile(std::string path, Mode mode);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Hands `piece` to the system at once: a reader, and a run that takes up
  // from a killed one, find all that was appended. Throws Error (a full disk),
  // leaving the file as it was.
  void append(const std::string& piece);

 private:
  std::string path_;
  int file_;
};

}  // namespace reformer
