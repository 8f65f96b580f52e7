// Files for readers that want files: in memory where possible.
#pragma once

#include <string>

namespace reformer::fuzz {

// A folder of this process for the target of that name, removed at its end. In
// $TMPDIR where that is set: tests/fuzz/run.py removes what a finding leaves
// behind.
std::string scratch_folder(const std::string& target);

// Replaces the file and returns its path.
std::string put_file(const std::string& path, const std::string& bytes);

}  // namespace reformer::fuzz
