// A string as a stream.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "reformer/data/byte_stream.h"

namespace reformer {

class StringStream : public ByteStream {
 public:
  explicit StringStream(std::string bytes) : bytes_(std::move(bytes)) {}

  // At most 7 bytes at a time: a stream need not give all that it is asked for.
  size_t read(std::span<uint8_t> out) override {
    most_asked_ = std::max(most_asked_, out.size());
    const size_t n = std::min({out.size(), bytes_.size() - at_, size_t{7}});
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(at_), n, out.begin());
    at_ += n;
    return n;
  }

  size_t most_asked() const { return most_asked_; }  // at once

 private:
  std::string bytes_;
  size_t at_ = 0;
  size_t most_asked_ = 0;
};

}  // namespace reformer
