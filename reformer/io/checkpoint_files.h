// The files of a checkpoint's folder, as they are written.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reformer/io/checkpoint.h"
#include "reformer/model/parameter.h"

namespace reformer {

// Tensors by the name of the file that they go to.
using TensorFiles =
    std::vector<std::pair<std::string, std::vector<NamedTensor>>>;

// Of files, by their names.
using Checksums = std::map<std::string, std::string>;

// Throws Error unless a file that was read, whose own checksum this is, is the
// one that `checksums` know.
void require_checksum(const std::filesystem::path& path,
                      const std::string& checksum, const Checksums& checksums);

// Throws Error where a tensor that was read from `path` holds NaN or infinity.
void require_finite(const std::vector<NamedTensor>& tensors,
                    const std::filesystem::path& path);

// Throws NotFinite where a tensor after `step` steps holds NaN or infinity.
void require_finite(const std::vector<NamedTensor>& tensors, int64_t step);

// On disk when it returns.
Checksums write_tensors(const std::filesystem::path& folder,
                        const TensorFiles& files, int64_t step);

// All but the tensors, whose files have these checksums.
void write_state(const std::filesystem::path& folder,
                 const Checkpoint& checkpoint, const Checksums& checksums,
                 bool best);

// Which file has which parameter, as other programs look for it where there are
// several.
void write_index(const std::filesystem::path& folder, const TensorFiles& files);

}  // namespace reformer
