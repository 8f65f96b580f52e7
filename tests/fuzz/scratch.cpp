#include "tests/fuzz/scratch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

namespace reformer::fuzz {
namespace {

struct Folder {
  std::string path;

  Folder() {
    const char* given = ::getenv("TMPDIR");
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    path = std::string(given    ? given
                       : memory ? "/dev/shm"
                                : "/tmp") +
           "/reformer-fuzz-XXXXXX";
    if (!::mkdtemp(path.data())) throw std::runtime_error("no " + path);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

std::string scratch_folder(const std::string& target) {
  static const Folder folder;
  const std::string path = folder.path + "/" + target;
  ::mkdir(path.c_str(), 0700);
  return path;
}

std::string put_file(const std::string& path, const std::string& bytes) {
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written = file >= 0 && ::write(file, bytes.data(), bytes.size()) ==
                                        static_cast<ssize_t>(bytes.size());
  ::close(file);
  if (!written) throw std::runtime_error("cannot write " + path);
  return path;
}

}  // namespace reformer::fuzz
