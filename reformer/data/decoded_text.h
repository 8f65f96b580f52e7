// Text from a file, a folder or an archive.
#pragma once

#include <memory>
#include <string>

#include "reformer/data/bytes.h"
#include "reformer/data/cache.h"

namespace reformer {

// The bytes of all files of `path`, one after the other, as Collection orders
// them. They need not be UTF-8. A plain file, a pipe or standard input ("-") is
// read as it is; a folder, or what archive_kind knows, is decoded once into
// `cache_folder` (see cached).
std::shared_ptr<const Bytes> open_text(const std::string& path,
                                       const std::string& cache_folder,
                                       DecodeObserver& observer);

}  // namespace reformer
