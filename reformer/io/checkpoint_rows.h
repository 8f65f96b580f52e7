// The optimizer's state of a checkpoint, of which a rank reads what it keeps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "reformer/io/checkpoint_parts.h"
#include "reformer/model/parameter.h"
#include "reformer/model/row_range.h"

namespace reformer {

// Which rows are wanted of the whole state's tensor `name`, of these sizes;
// 0 of them: it is left out.
using WantedRows =
    std::function<RowRange(const std::string& name, at::IntArrayRef sizes)>;

// The wanted rows of the checkpoint of `step` in `directory`, whose other parts
// load_latest_model has loaded. Of reader.count readers each verifies its share
// of the files, which it reads whole, a tensor at a time: together they verify
// all. So it does with a file of which it wants all. Of other files nothing is
// read but headers and wanted rows.
//
// Throws as load_latest_model does, and what `wanted` throws.
std::vector<NamedTensor> load_optimizer_rows(const std::string& directory,
                                             int64_t step,
                                             const CheckpointPart& reader,
                                             const WantedRows& wanted);

// The same of a checkpoint's folder, whose files have these checksums.
std::vector<NamedTensor> read_optimizer_rows(
    const std::filesystem::path& folder, const Checksums& checksums,
    const CheckpointPart& reader, const WantedRows& wanted);

}  // namespace reformer
