#include "tests/io/tensorboard_reader.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace reformer {
namespace {

void demand(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}

  bool ended() const { return at_ == bytes_.size(); }

  std::string take(uint64_t count) {
    demand(count <= bytes_.size() - at_, "cut");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }

  // The test runs on little-endian machines.
  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const uint8_t byte = fixed<uint8_t>();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

void check_crc(const std::string& bytes, uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  demand((rotated >> 17 | rotated << 15) == plain_crc32c(bytes), "checksum");
}

std::string record(Reader& file) {
  const std::string length = file.take(8);
  check_crc(length, file.fixed<uint32_t>());
  const std::string message = file.take(Reader(length).fixed<uint64_t>());
  check_crc(message, file.fixed<uint32_t>());
  return message;
}

std::pair<std::string, float> scalar(Reader value) {
  std::pair<std::string, float> result;
  while (!value.ended()) {
    const uint64_t tag = value.varint();
    if (tag == (1 << 3 | 2)) {
      result.first = value.take(value.varint());
    } else {
      demand(tag == (2 << 3 | 5), "field of Summary.Value");
      result.second = value.fixed<float>();
    }
  }
  return result;
}

TensorboardEvent event(Reader message) {
  TensorboardEvent result;
  while (!message.ended()) {
    const uint64_t tag = message.varint();
    if (tag == (1 << 3 | 1)) {
      result.wall_time = message.fixed<double>();
    } else if (tag == (2 << 3 | 0)) {
      result.step = static_cast<int64_t>(message.varint());
    } else if (tag == (3 << 3 | 2)) {
      result.file_version = message.take(message.varint());
    } else if (tag == (5 << 3 | 2)) {
      Reader summary(message.take(message.varint()));
      while (!summary.ended()) {
        demand(summary.varint() == (1 << 3 | 2), "field of Summary");
        result.scalars.push_back(
            scalar(Reader(summary.take(summary.varint()))));
      }
    } else {
      demand(tag == (7 << 3 | 2), "field of Event");
      Reader session(message.take(message.varint()));
      demand(session.varint() == (1 << 3 | 0), "field of SessionLog");
      result.session_status = static_cast<int64_t>(session.varint());
    }
  }
  return result;
}

}  // namespace

uint32_t plain_crc32c(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ (0x82f63b78 & (0 - (crc & 1)));
    }
  }
  return ~crc;
}

std::vector<TensorboardEvent> read_tensorboard(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  Reader file(std::string(std::istreambuf_iterator<char>(stream), {}));
  std::vector<TensorboardEvent> events;
  while (!file.ended()) events.push_back(event(Reader(record(file))));
  return events;
}

}  // namespace reformer
