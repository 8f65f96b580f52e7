// Archives for the tests to read.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace reformer {

// Names and contents. Names that end in '/' are folders.
using Members = std::vector<std::pair<std::string, std::string>>;

// An archive as its name says: .zip, .npz (stored, not deflated), .tar, and
// .tar.gz, .tar.xz, .tar.zst, .tar.bz2.
std::string archive_bytes(const std::string& name, const Members& members);

// One file, compressed as the name says.
std::string compressed_bytes(const std::string& name,
                             const std::string& content);

}  // namespace reformer
