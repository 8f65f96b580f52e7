// The header of a safetensors file: JSON that names each tensor and its place.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/io/safetensors.h"

namespace reformer {

// A file begins with the header's length, little-endian.
inline constexpr int64_t kHeaderLengthBytes = 8;

struct TensorEntry {
  std::string name;
  at::ScalarType type;
  std::vector<int64_t> shape;
  int64_t begin;  // of its bytes, counted from the end of the header
  int64_t end;
};

struct SafetensorsHeader {
  Metadata metadata;
  std::vector<TensorEntry> entries;  // by their place
};

// As the format spells it ("F32"). Throws Error for types it does not have.
std::string type_name(at::ScalarType type);

// Padded with spaces so that the data behind it are aligned to 8 bytes. Throws
// Error for a name that is given twice or is no text.
std::string render_header(const SafetensorsHeader& header);

// Throws Error unless the entries are sound and fill `data_size` bytes without
// holes and overlaps.
SafetensorsHeader parse_header(const std::string& text, int64_t data_size);

// These functions do not know which file they talk of: here their errors learn
// it.
template <class Function>
auto naming_file(const std::string& path, Function function) {
  try {
    return function();
  } catch (const Unreadable& error) {
    throw Unreadable(path + ": " + error.what());
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
}

}  // namespace reformer
