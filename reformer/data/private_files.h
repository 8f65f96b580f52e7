// Files that nobody else can read, and that nobody else can have written.
#pragma once

#include <filesystem>

namespace reformer {

inline constexpr unsigned kPrivateFile = 0600;
inline constexpr unsigned kPrivateFolder = 0700;

// Whether `path` is an ordinary file, no link to one, that belongs to this user
// (or root) and that only its owner may write. What others could have written
// is not to be trusted, whatever hashes it has.
bool is_private_file(const std::filesystem::path& path);

// Makes the folder where it is not there yet, for this user alone. Throws Error
// where it cannot be made, belongs to another user or may be written by others.
void make_private_folder(const std::filesystem::path& folder);

}  // namespace reformer
