// What is wrong with archives and compressed files: damage, and bombs.
#pragma once

#include <cstdint>
#include <string>

#include "reformer/base/errors.h"

namespace reformer {

[[noreturn]] inline void throw_damaged(const std::string& path,
                                       const std::string& reason) {
  throw Error("cannot read " + path + ": it is damaged (" + reason +
              "); get it again, or leave it out");
}

// Counts what goes in and what comes out. Text and images become some ten
// times as long; a file that becomes a thousand times as long, and longer than
// a gibibyte, was made to fill a disk.
class Expansion {
 public:
  static constexpr int64_t kMostTimes = 1000;
  static constexpr int64_t kAlwaysAllowed = int64_t{1} << 30;

  explicit Expansion(std::string path, int64_t input = 0)
      : path_(std::move(path)), input_(input) {}

  void add_input(size_t bytes) { input_ += static_cast<int64_t>(bytes); }

  // Throws Error where it is too much.
  void add_output(size_t bytes) {
    output_ += static_cast<int64_t>(bytes);
    require(output_ <= kAlwaysAllowed || output_ / kMostTimes <= input_,
            "cannot read ", path_, ": ", input_, " bytes of it became ",
            output_, ", more than ", kMostTimes,
            " times as many; unpack it by hand if that is right");
  }

 private:
  std::string path_;
  int64_t input_;
  int64_t output_ = 0;
};

}  // namespace reformer
