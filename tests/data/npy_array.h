// A .npy file of bytes, as NumPy writes it.
#pragma once

#include <string>

namespace reformer {

inline std::string npy_array(int64_t rows, int64_t columns,
                             const std::string& data,
                             const std::string& type = "|u1") {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" +
      std::to_string(rows) + ", " + std::to_string(columns) + "), }";
  header.resize(117, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + data;
}

}  // namespace reformer
