// The safetensors file format: an 8-byte length, a JSON header, raw tensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reformer/model/parameter.h"

namespace reformer {

using Metadata = std::map<std::string, std::string>;

// Writes beside `path`, syncs, and renames, so that `path` is either the old
// file or the whole new one at any moment. Throws Error (a full disk, a missing
// folder), leaving what was there. Tensors of any strides and device, in this
// order; one at a time is copied where it is not contiguous on the CPU.
//
// Returns a checksum of names, types, shapes, values and metadata (but not of
// their order), which is also added to the metadata.
std::string write_safetensors(const std::string& path,
                              const std::vector<NamedTensor>& tensors,
                              const Metadata& metadata);

struct SafetensorsFile {
  std::vector<NamedTensor> tensors;  // in the order of their bytes
  Metadata metadata;                 // without the checksum
  std::string checksum;              // verified; empty where there is none
};

// Throws Error that names the file and the fault: missing, truncated, foreign,
// bit-flipped, a type that LibTorch has not.
SafetensorsFile read_safetensors(const std::string& path);

}  // namespace reformer
