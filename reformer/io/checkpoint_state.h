// state.json of a checkpoint: all of it but the tensors.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "reformer/io/checkpoint.h"

namespace reformer {

struct CheckpointState {
  Checkpoint checkpoint;                         // without its tensors
  std::map<std::string, std::string> checksums;  // of the files beside it
};

// With a checksum of its own.
std::string render_state(const CheckpointState& state);

// `path` names the file in errors: Error where it is damaged, Unreadable where
// another program wrote it.
CheckpointState parse_state(const std::string& text, const std::string& path);

// Of a checkpoint's folder.
CheckpointState read_state(const std::filesystem::path& folder);

}  // namespace reformer
