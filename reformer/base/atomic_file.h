// Files that appear whole or not at all, whenever the program is killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace reformer {

// What is being written has a name of its own beside the name it will get,
// another at each call: .tmp-NAME-PID-RANDOM. After a kill it stays behind and
// may be removed.
std::filesystem::path unfinished_name(const std::filesystem::path& path);
bool is_unfinished(const std::filesystem::path& path);

// The NAME in .tmp-NAME-PID or .tmp-NAME-PID-RANDOM (16 hexadecimal digits);
// empty where `path` has no such name.
std::string unfinished_target(const std::filesystem::path& path);

// Makes renames and removals in a folder survive a loss of power.
void sync_folder(const std::filesystem::path& folder);

// A file that is written beside `path` and takes its place when committed;
// destroyed before that, it leaves no trace. Every function throws Error with
// the path and the system's reason (no space left on device).
class AtomicFile {
 public:
  // `mode` are the new file's permissions, less the process's umask.
  explicit AtomicFile(const std::filesystem::path& path, unsigned mode = 0666);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(int64_t offset, const void* data, int64_t size);

  // Syncs the file, renames it, and syncs the folder.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path unfinished_;
  int descriptor_ = -1;
  bool committed_ = false;
};

void write_file_atomically(const std::filesystem::path& path,
                           const std::string& text);

}  // namespace reformer
