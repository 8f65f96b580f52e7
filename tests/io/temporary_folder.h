// A folder for the files of one test.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace reformer {

class TemporaryFolder {
 public:
  // In memory where possible: on a disk each sync takes milliseconds.
  TemporaryFolder() {
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    path_ = std::string(memory ? "/dev/shm" : testing::TempDir()) +
            "/reformer-XXXXXX";
    if (!::mkdtemp(path_.data())) throw std::runtime_error("no " + path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

}  // namespace reformer
