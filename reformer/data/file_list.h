// The files that a path stands for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reformer/base/sha256.h"

namespace reformer {

struct ListedFile {
  std::string path;
  std::string name;  // of a folder's file: its path below that folder
  int64_t size = 0;
  int64_t modified = 0;  // nanoseconds
};

bool is_folder(const std::string& path);

// A folder, or an ordinary file that is not empty: not a pipe, nor "-".
bool can_be_read_twice(const std::string& path);

// The file itself, or all ordinary files below a folder, sorted by name. Names
// that begin with a dot are left out, and folders behind links are not entered.
// Throws Error, with the path and the reason, when it cannot be read.
std::vector<ListedFile> files_of(const std::string& path);

// A digest that changes when a file is added, removed, renamed, resized or
// written: of names, sizes and times, and of the first and last bytes of the
// files, at most 64 of them, for copies that keep the time.
Sha256Digest signature_of(const std::vector<ListedFile>& files);

}  // namespace reformer
