#include "reformer/io/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "reformer/base/errors.h"
#include "reformer/base/host_name.h"
#include "reformer/base/input_file.h"

namespace reformer {
namespace {

constexpr char kHolder[] = "process ";

std::string reason() { return std::generic_category().message(errno); }

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[64] = "";
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

// What the holder wrote: "process 12 on host since ...". Anybody may have
// written into the file: one line of printable characters is shown.
std::string holder(int file) {
  char text[256];
  const ssize_t size = ::pread(file, text, sizeof text, 0);
  std::string line;
  for (ssize_t i = 0; i < size && text[i] >= ' ' && text[i] <= '~'; ++i) {
    line += text[i];
  }
  return line.empty() ? "another process" : line;
}

// A process that ended removed the file between our opening and locking it: a
// third one may hold a new one of that name.
bool is_still_there(int file, const std::string& path) {
  struct stat ours {};
  struct stat there {};
  return ::fstat(file, &ours) == 0 && ::stat(path.c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

}  // namespace

bool is_lock_file(const std::string& path) {
  const std::string text = read_text(path);
  return text.empty() || text.starts_with(kHolder);
}

RunLock::RunLock(const std::string& directory)
    : path_((std::filesystem::path(directory) / kLockFile).string()) {
  while (!take()) {
  }
  write_holder();
}

RunLock::RunLock(RunLock&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      warning_(std::move(other.warning_)) {}

RunLock::~RunLock() {
  if (file_ < 0) return;
  if (warning_.empty() && is_still_there(file_, path_)) {
    ::unlink(path_.c_str());
  }
  ::close(file_);
}

// False where it has to be tried again.
bool RunLock::take() {
  file_ =
      ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  require(file_ >= 0, path_, ": cannot write: ", reason());
  int taken;
  do {
    taken = ::flock(file_, LOCK_EX | LOCK_NB);
  } while (taken != 0 && errno == EINTR);
  if (taken == 0 && is_still_there(file_, path_)) return true;
  if (taken != 0 && errno != EWOULDBLOCK) {
    warning_ = path_ + ": this file system has no locks (" + reason() +
               "): a second run in the same folder would go unnoticed";
    return true;
  }
  const std::string who = taken == 0 ? "" : holder(file_);
  ::close(std::exchange(file_, -1));
  require(taken == 0, std::filesystem::path(path_).parent_path().string(),
          ": a run is going on in this folder: ", who,
          "; wait for its end, stop it, or choose another folder");
  return false;
}

// For whoever comes second; a disk too full for it is found soon enough.
void RunLock::write_holder() const {
  const std::string text = kHolder + std::to_string(::getpid()) + " on " +
                           host_name() + " since " + utc_now() + "\n";
  if (::ftruncate(file_, 0) == 0) {
    (void)!::pwrite(file_, text.data(), text.size(), 0);
  }
}

}  // namespace reformer
