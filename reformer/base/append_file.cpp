#include "reformer/base/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

// False, with errno set, where not all of it could be written.
bool write_all(int file, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written =
        ::write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

AppendFile::AppendFile(std::string path, Mode mode) : path_(std::move(path)) {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC |
                    (mode == Mode::kCreateNew ? O_EXCL : 0);
  file_ = ::open(path_.c_str(), flags, 0666);
  require(file_ >= 0, "cannot write ", path_, ": ", std::strerror(errno));
}

AppendFile::~AppendFile() { ::close(file_); }

void AppendFile::append(const std::string& piece) {
  const off_t end = ::lseek(file_, 0, SEEK_END);
  if (write_all(file_, piece)) return;
  const int fault = errno;
  // What was written of it would spoil the next piece. Where even this fails,
  // readers skip a last line without an end.
  if (end >= 0) (void)!::ftruncate(file_, end);
  throw Error("cannot write " + path_ + ": " + std::strerror(fault));
}

}  // namespace reformer
