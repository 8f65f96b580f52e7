#include "reformer/io/tensorboard.h"

#include <array>
#include <bit>

namespace reformer {
namespace {

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(Unsigned); ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
  return bytes;
}

// CRC-32C (Castagnoli), a byte at a time.
constexpr std::array<uint32_t, 256> crc_table() {
  constexpr uint32_t kPolynomial = 0x82f63b78;  // bits reversed
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1) != 0 ? crc >> 1 ^ kPolynomial : crc >> 1;
    }
    table[byte] = crc;
  }
  return table;
}

uint32_t crc32c(const std::string& bytes) {
  static constexpr auto kTable = crc_table();
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ crc >> 8;
  }
  return ~crc;
}

// TFRecord masks its checksums: a CRC over data that hold a CRC is weak.
std::string masked_crc(const std::string& bytes) {
  return little_endian(std::rotr(crc32c(bytes), 15) + 0xa282ead8u);
}

std::string framed(const std::string& message) {
  const std::string length = little_endian(uint64_t{message.size()});
  return length + masked_crc(length) + message + masked_crc(message);
}

// Protocol buffers: a field is a tag (number and kind) and a value.
enum class Kind : uint64_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kFixed32 = 5
};

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes.push_back(static_cast<char>(value | 0x80));
  }
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string tag(int number, Kind kind) {
  return varint(static_cast<uint64_t>(number) << 3 |
                static_cast<uint64_t>(kind));
}

std::string integer_field(int number, int64_t value) {
  return tag(number, Kind::kVarint) + varint(static_cast<uint64_t>(value));
}

std::string double_field(int number, double value) {
  return tag(number, Kind::kFixed64) +
         little_endian(std::bit_cast<uint64_t>(value));
}

std::string float_field(int number, float value) {
  return tag(number, Kind::kFixed32) +
         little_endian(std::bit_cast<uint32_t>(value));
}

std::string bytes_field(int number, const std::string& value) {
  return tag(number, Kind::kBytes) + varint(value.size()) + value;
}

// Event, Summary and SessionLog, by their field numbers.
std::string event(double wall_time, int64_t step, const std::string& what) {
  return double_field(1, wall_time) + integer_field(2, step) + what;
}

std::string summary_value(const std::string& name, double value) {
  return bytes_field(
      1, bytes_field(1, name) + float_field(2, static_cast<float>(value)));
}

}  // namespace

std::string tensorboard_version_record(double wall_time) {
  return framed(event(wall_time, 0, bytes_field(3, "brain.Event:2")));
}

std::string tensorboard_restart_record(double wall_time, int64_t step) {
  constexpr int64_t kStart = 1;
  const std::string session_log = integer_field(1, kStart);
  return framed(event(wall_time, step, bytes_field(7, session_log)));
}

std::string tensorboard_text_record(double wall_time, int64_t step,
                                    const std::string& name,
                                    const std::string& text) {
  constexpr int64_t kString = 7;                                  // of DataType
  const std::string shape = bytes_field(2, integer_field(1, 1));  // [1]
  const std::string tensor =
      integer_field(1, kString) + bytes_field(2, shape) + bytes_field(8, text);
  const std::string plugin = bytes_field(1, bytes_field(1, "text"));
  const std::string value =
      bytes_field(1, name) + bytes_field(8, tensor) + bytes_field(9, plugin);
  return framed(event(wall_time, step, bytes_field(5, bytes_field(1, value))));
}

std::string tensorboard_scalars_record(double wall_time, int64_t step,
                                       const Scalars& scalars) {
  std::string summary;
  for (const auto& [name, value] : scalars) {
    summary += summary_value(name, value);
  }
  return framed(event(wall_time, step, bytes_field(5, summary)));
}

}  // namespace reformer
