// NumPy's .npy arrays of bytes, row by row.
#pragma once

#include <cstdint>

#include "reformer/data/byte_stream.h"

namespace reformer {

struct NpyHeader {
  int64_t rows = 0;
  int64_t columns = 0;
};

// Reads the header; the rows follow in the stream. Throws Error for what is no
// .npy file, or not of two dimensions, uint8 and in C order.
NpyHeader read_npy_header(ByteStream& stream);

}  // namespace reformer
