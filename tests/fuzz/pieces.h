// An input taken apart: numbers and texts, as many as there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace reformer::fuzz {

// Zeros and empty texts beyond the end.
class Pieces {
 public:
  explicit Pieces(std::string input) : input_(std::move(input)) {}

  bool at_end() const { return at_ >= input_.size(); }
  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }

  // 8 bytes.
  template <class T>
  T number() {
    static_assert(sizeof(T) == 8);
    T value;
    std::memcpy(&value, take(8).data(), 8);
    return value;
  }

  // A byte that says how long it is, then its bytes.
  std::string text() {
    const size_t length = byte();
    const std::string taken =
        input_.substr(std::min(at_, input_.size()), length);
    at_ += length;
    return taken;
  }

  std::string rest() {
    const std::string taken = input_.substr(std::min(at_, input_.size()));
    at_ = input_.size();
    return taken;
  }

 private:
  std::string take(size_t size) {
    std::string bytes = input_.substr(std::min(at_, input_.size()), size);
    bytes.resize(size, '\0');
    at_ += size;
    return bytes;
  }

  std::string input_;
  size_t at_ = 0;
};

// The same the other way round, for seeds.
inline std::string piece(const std::string& text) {
  return std::string(1, static_cast<char>(text.size())) + text;
}
template <class T>
std::string piece(T value) {
  static_assert(sizeof(T) == 8);
  return std::string(reinterpret_cast<const char*>(&value), 8);
}

}  // namespace reformer::fuzz
