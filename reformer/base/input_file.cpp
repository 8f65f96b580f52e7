#include "reformer/base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace reformer {

namespace {

void require_system(bool succeeded, const std::string& path) {
  if (succeeded) return;
  const int fault = errno;
  const std::string sentence =
      path + ": cannot read: " + std::generic_category().message(fault);
  if (fault == ENOENT || fault == ENOTDIR) throw Error(sentence);
  throw Unreadable(sentence);
}

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  struct stat status;
  require_system(::stat(path.c_str(), &status) == 0, path);
  // Asked before it is opened: opening a pipe waits for a writer.
  require(S_ISREG(status.st_mode), path, ": is not a file");
  size_ = status.st_size;
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require_system(descriptor_ >= 0, path);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(int64_t offset, void* data, int64_t size) const {
  char* next = static_cast<char*>(data);
  while (size > 0) {
    // Linux reads at most 2 GiB a call.
    const ssize_t got = ::pread(descriptor_, next, size, offset);
    if (got < 0 && errno == EINTR) continue;
    require_system(got >= 0, path_);
    require(got > 0, path_, ": truncated: ends at byte ", offset);
    next += got;
    offset += got;
    size -= got;
  }
}

std::string InputFile::read(int64_t offset, int64_t size) const {
  std::string text(size, '\0');
  read(offset, text.data(), size);
  return text;
}

std::string read_text(const std::string& path) {
  const InputFile file(path);
  return file.read(0, file.size());
}

}  // namespace reformer
