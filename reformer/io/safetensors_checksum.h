// What tells a safetensors file of ours from a damaged one: a checksum of its
// tensors and metadata, among the metadata.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "reformer/io/safetensors_header.h"

namespace reformer {

// Of a tensor's bytes, contiguous on the host.
std::string hash_of(const at::Tensor& tensor);

// Of the parsed contents, by name, so that a file that another program wrote
// again, in another order, is still right. `hashes` are those of the entries'
// bytes.
std::string combined_checksum(const SafetensorsHeader& header,
                              const std::vector<std::string>& hashes);

// Room for it, and then it.
void put_checksum(Metadata& metadata);
void put_checksum(Metadata& metadata, const std::string& checksum);

// Moves it out of the metadata; empty where there is none. Throws Error where
// it is damaged, Unreadable where it is of an unknown kind.
std::string take_checksum(Metadata& metadata);

}  // namespace reformer
