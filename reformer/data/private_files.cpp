#include "reformer/data/private_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "reformer/base/errors.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

bool is_ours(const struct stat& status) {
  return status.st_uid == ::geteuid() || status.st_uid == 0;
}

bool others_may_write(const struct stat& status) {
  return (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

}  // namespace

bool is_private_file(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         is_ours(status) && !others_may_write(status);
}

void make_private_folder(const fs::path& folder) {
  const fs::path path = folder.has_filename() ? folder : folder.parent_path();
  std::error_code error;
  if (!fs::exists(path, error) && path.has_parent_path()) {
    fs::create_directories(path.parent_path(), error);
  }
  if (!error && ::mkdir(path.c_str(), kPrivateFolder) != 0 && errno != EEXIST) {
    error.assign(errno, std::generic_category());
  }
  require(!error, "cannot make the folder ", path.string(), ": ",
          error.message());
  struct stat status {};
  require(::stat(path.c_str(), &status) == 0, "cannot read ", path.string(),
          ": ", std::strerror(errno));
  require(S_ISDIR(status.st_mode), "cannot make the folder ", path.string(),
          ": a file has its name");
  require(is_ours(status), "the folder ", path.string(),
          " belongs to another user, who could have written what it holds");
  require(!others_may_write(status), "the folder ", path.string(),
          " may be written by others, who could have written what it holds; "
          "chmod go-w ends that");
}

}  // namespace reformer
