// What a gzip file holds, through zlib, which compares length and CRC-32;
// libarchive's own reader of gzip does not.
#pragma once

#include <memory>
#include <string>

#include "reformer/data/byte_stream.h"

namespace reformer {

// A file may be several gzip files one after the other, and be padded with
// zeros. Anything else behind it is an error: it could be the next one, with
// its first bytes damaged. The stream throws Error, with `path`, for what is
// damaged or cut short; `input` must outlive it.
std::unique_ptr<ByteStream> open_gzip(const std::string& path,
                                      ByteStream& input);

}  // namespace reformer
