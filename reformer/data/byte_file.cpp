#include "reformer/data/byte_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

// Goes on after a signal, which training catches to save and stop.
template <class Call>
int64_t uninterrupted(const Call& call) {
  int64_t result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

bool is_null(const struct stat& found) {
  struct stat null {};
  return stat("/dev/null", &null) == 0 && S_ISCHR(null.st_mode) &&
         null.st_rdev == found.st_rdev;
}

}  // namespace

// read() rather than mmap: a mapped file that somebody truncates ends the
// program with SIGBUS, and its pages would count as memory of the program.
ByteFile::ByteFile(const std::string& path, int64_t most_kept)
    : path_(path == "-" ? "standard input" : path) {
  try {
    open(path, most_kept);
  } catch (...) {
    if (descriptor_ >= 0) close(descriptor_);
    throw;
  }
}

ByteFile::~ByteFile() { close(descriptor_); }

void ByteFile::open(const std::string& path, int64_t most_kept) {
  const bool is_input = path == "-";
  descriptor_ = static_cast<int>(uninterrupted([&] {
    return is_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                    : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }));
  if (descriptor_ < 0) throw_unreadable(std::strerror(errno));
  struct stat found {};
  if (fstat(descriptor_, &found) != 0) throw_unreadable(std::strerror(errno));
  if (S_ISDIR(found.st_mode)) throw_unreadable("it is a directory");
  // /dev/zero has no end; a terminal has, and /dev/null is one.
  const bool device = S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode);
  if (device && !isatty(descriptor_) && !is_null(found)) {
    throw_unreadable("it is a device, not a file");
  }
  size_ = found.st_size;
  // Files of /proc are ordinary ones of size 0.
  if (is_input || !S_ISREG(found.st_mode) || size_ == 0) {
    keep_all(most_kept);
  }
  require(size_ > 0, path_, " is empty");
}

void ByteFile::keep_all(int64_t most_kept) {
  constexpr size_t kPart = 1 << 16;
  size_t used = 0;
  for (int64_t n = 1; n > 0; used += static_cast<size_t>(n)) {
    if (static_cast<int64_t>(used) > most_kept) {
      throw_unreadable("it has more than " + std::to_string(most_kept) +
                       " bytes, a quarter of this machine's memory; write them "
                       "to a file");
    }
    if (kept_.size() - used < kPart) kept_.resize(2 * used + kPart);
    n = uninterrupted([&] {
      return ::read(descriptor_, kept_.data() + used, kept_.size() - used);
    });
    if (n < 0) throw_unreadable(std::strerror(errno));
  }
  kept_.resize(used);
  kept_.shrink_to_fit();
  size_ = static_cast<int64_t>(used);
}

void ByteFile::read(int64_t begin, std::span<uint8_t> out) const {
  while (!out.empty()) {
    const int64_t n = read_some(begin, out);
    if (n < 0) throw_unreadable(std::strerror(errno));
    if (n == 0) {
      throw_unreadable("it has become shorter than its " +
                       std::to_string(size_) + " bytes");
    }
    begin += n;
    out = out.subspan(static_cast<size_t>(n));
  }
}

int64_t ByteFile::read_some(int64_t begin, std::span<uint8_t> out) const {
  if (kept_.empty()) {
    return uninterrupted(
        [&] { return pread(descriptor_, out.data(), out.size(), begin); });
  }
  std::copy_n(kept_.begin() + begin, out.size(), out.begin());
  return static_cast<int64_t>(out.size());
}

void ByteFile::throw_unreadable(const std::string& reason) const {
  throw Error("cannot read " + path_ + ": " + reason);
}

}  // namespace reformer
