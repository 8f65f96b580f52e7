// Files for readers that want files: in memory where possible.
#pragma once

#include <string>

namespace reformer::fuzz {

// A folder of this process, removed at its end. In $TMPDIR where that is set:
// tests/fuzz/run.py removes what a finding leaves behind.
const std::string& scratch_folder();

// Replaces scratch_folder()/name and returns its path.
std::string put_scratch(const std::string& name, const std::string& bytes);

}  // namespace reformer::fuzz
