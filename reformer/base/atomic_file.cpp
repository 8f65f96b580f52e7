#include "reformer/base/atomic_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "reformer/base/errors.h"
#include "reformer/base/hex.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

constexpr char kUnfinishedPrefix[] = ".tmp-";

void require_system(bool succeeded, const fs::path& path, const char* action) {
  if (succeeded) return;
  const auto reason = std::generic_category().message(errno);
  throw Error(path.string() + ": cannot " + action + ": " + reason);
}

int open_retrying(const fs::path& path, int flags, unsigned mode = 0) {
  int descriptor;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

// Nobody can guess it, and put something else there before.
std::string random_digits() {
  uint8_t bytes[8];
  const bool filled = ::getrandom(bytes, sizeof bytes, 0) == sizeof bytes;
  require(filled, "the system gives no random numbers");
  return hex(bytes);
}

}  // namespace

fs::path unfinished_name(const fs::path& path) {
  // A file system's names have at most 255 bytes.
  constexpr size_t kMostOfName = 200;
  return path.parent_path() /
         (kUnfinishedPrefix + path.filename().string().substr(0, kMostOfName) +
          "-" + std::to_string(::getpid()) + "-" + random_digits());
}

bool is_unfinished(const fs::path& path) {
  return path.filename().string().starts_with(kUnfinishedPrefix);
}

namespace {

// Takes "-" and what comes after the last one off the end of `name`, if that is
// not empty and of `allowed` characters alone.
bool take_suffix(std::string& name, const char* allowed) {
  const size_t dash = name.rfind('-');
  if (dash == std::string::npos || dash + 1 == name.size() ||
      name.find_first_not_of(allowed, dash + 1) != std::string::npos) {
    return false;
  }
  name.resize(dash);
  return true;
}

}  // namespace

std::string unfinished_target(const fs::path& path) {
  if (!is_unfinished(path)) return "";
  constexpr size_t kRandom = 17;  // "-" and 16 digits, in names that have them
  std::string name =
      path.filename().string().substr(sizeof(kUnfinishedPrefix) - 1);
  const size_t dash = name.rfind('-');
  if (dash != std::string::npos && name.size() - dash == kRandom) {
    take_suffix(name, "0123456789abcdef");
  }
  return take_suffix(name, "0123456789") ? name : "";
}

void sync_folder(const fs::path& folder) {
  const fs::path path = folder.empty() ? "." : folder;
  const int descriptor = open_retrying(path, O_RDONLY | O_DIRECTORY);
  require_system(descriptor >= 0, path, "open");
  // Some file systems cannot sync folders, and say so with EINVAL.
  const bool synced = ::fsync(descriptor) == 0 || errno == EINVAL;
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  require_system(synced, path, "sync");
}

AtomicFile::AtomicFile(const fs::path& path, unsigned mode)
    : path_(path), unfinished_(unfinished_name(path)) {
  descriptor_ = open_retrying(unfinished_,
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  require_system(descriptor_ >= 0, path_, "write");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!committed_) ::unlink(unfinished_.c_str());
}

void AtomicFile::write(int64_t offset, const void* data, int64_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    // Linux writes at most 2 GiB a call.
    const ssize_t written = ::pwrite(descriptor_, next, size, offset);
    if (written < 0 && errno == EINTR) continue;
    require_system(written >= 0, path_, "write");
    next += written;
    offset += written;
    size -= written;
  }
}

void AtomicFile::commit() {
  require_system(::fsync(descriptor_) == 0, path_, "write");
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  require_system(closed == 0 || errno == EINTR, path_, "write");
  const int renamed = ::rename(unfinished_.c_str(), path_.c_str());
  require_system(renamed == 0, path_, "write");
  committed_ = true;
  sync_folder(path_.parent_path());
}

void write_file_atomically(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(0, text.data(), static_cast<int64_t>(text.size()));
  file.commit();
}

}  // namespace reformer
