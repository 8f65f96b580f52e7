// Reads TensorBoard event files as TensorFlow defines them: the tolerance of
// what is written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reformer {

struct TensorboardEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  int64_t session_status = 0;  // SessionLog's: 1 is START
  std::vector<std::pair<std::string, float>> scalars;
};

// Throws std::runtime_error for a wrong checksum or a cut record.
std::vector<TensorboardEvent> read_tensorboard(const std::string& path);

// CRC-32C, bit by bit.
uint32_t plain_crc32c(const std::string& bytes);

}  // namespace reformer
