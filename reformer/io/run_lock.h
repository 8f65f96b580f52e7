// One run at a time in a folder.
#pragma once

#include <string>

namespace reformer {

inline constexpr char kLockFile[] = "run.lock";

// Whether a RunLock may have made it: empty, or with a holder inside.
bool is_lock_file(const std::string& path);

// Holds DIR/run.lock until it is destroyed; readers need not ask. The system
// lets go of it however the process ends, so that a file that a kill left
// behind holds nobody up. Inside are who holds it and since when.
class RunLock {
 public:
  // Throws Error where another process holds it, saying which, and where the
  // file cannot be written.
  explicit RunLock(const std::string& directory);
  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // A sentence where this file system has no locks; then nobody is kept out.
  const std::string& warning() const { return warning_; }

 private:
  bool take();
  void write_holder() const;

  std::string path_;
  int file_ = -1;
  std::string warning_;
};

}  // namespace reformer
