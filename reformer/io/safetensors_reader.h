// A safetensors file of which tensors, or some of their rows, are read.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reformer/base/input_file.h"
#include "reformer/io/safetensors_header.h"
#include "reformer/model/row_range.h"

namespace reformer {

// Every function throws Error that names the file and the fault, as
// read_safetensors does.
class SafetensorsReader {
 public:
  // Reads the header.
  explicit SafetensorsReader(const std::string& path);

  // Its metadata without the checksum.
  const SafetensorsHeader& header() const { return header_; }
  const std::string& path() const { return file_.path(); }

  // As the header says it; empty: there is none.
  const std::string& checksum() const { return checksum_; }

  // All of a tensor, or some of its rows, into `to`, contiguous on the host.
  void read(const TensorEntry& entry, const at::Tensor& to) const;
  void read(const TensorEntry& entry, const RowRange& rows,
            const at::Tensor& to) const;

  // `hashes` are those of all tensors' bytes (hash_of), or none where there is
  // no checksum to compare them with.
  void verify(const std::vector<std::string>& hashes) const;

 private:
  InputFile file_;
  SafetensorsHeader header_;
  std::string checksum_;
  int64_t data_begin_ = 0;
};

}  // namespace reformer
