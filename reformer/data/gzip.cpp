#include "reformer/data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <vector>

#include "reformer/data/archive_faults.h"

namespace reformer {
namespace {

class GzipStream : public ByteStream {
 public:
  GzipStream(const std::string& path, ByteStream& input)
      : path_(path), input_(input), expansion_(path) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&inflater_, MAX_WBITS + kGzipOnly) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~GzipStream() override { inflateEnd(&inflater_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  size_t read(std::span<uint8_t> out) override {
    constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits
    const auto size = static_cast<uInt>(std::min(out.size(), kMost));
    inflater_.next_out = out.data();
    inflater_.avail_out = size;
    while (inflater_.avail_out == size && size > 0) {
      if (inflater_.avail_in == 0 && !refill()) break;
      if (begins_next()) inflate_some();
    }
    const size_t n = size - inflater_.avail_out;
    expansion_.add_output(n);
    return n;
  }

 private:
  bool refill() {
    const size_t n = input_.read(part_);
    if (n == 0 && !between_) throw_damaged(path_, "truncated gzip input");
    inflater_.next_in = part_.data();
    inflater_.avail_in = static_cast<uInt>(n);
    expansion_.add_input(n);
    return n > 0;
  }

  // Between two gzip files: goes past zeros. False when the input is used up.
  bool begins_next() {
    if (!between_) return true;
    for (; inflater_.avail_in > 0 && *inflater_.next_in == 0; padded_ = true) {
      ++inflater_.next_in;
      --inflater_.avail_in;
    }
    if (inflater_.avail_in == 0) return false;
    constexpr Bytef kFirstByte = 0x1f;
    if (padded_ || *inflater_.next_in != kFirstByte) {
      throw_damaged(path_, "bytes behind its end that are no gzip");
    }
    inflateReset(&inflater_);
    between_ = false;
    return true;
  }

  void inflate_some() {
    const int result = inflate(&inflater_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      between_ = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw_damaged(path_, inflater_.msg != nullptr ? inflater_.msg
                                                    : "a dictionary is needed");
    }
  }

  std::string path_;
  ByteStream& input_;
  Expansion expansion_;
  std::vector<uint8_t> part_ = std::vector<uint8_t>(1 << 16);
  z_stream inflater_{};
  bool between_ = false;  // two gzip files
  bool padded_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> open_gzip(const std::string& path,
                                      ByteStream& input) {
  return std::make_unique<GzipStream>(path, input);
}

}  // namespace reformer
