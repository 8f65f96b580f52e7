#include "reformer/io/safetensors_reader.h"

#include <algorithm>
#include <cstring>

#include "reformer/base/errors.h"
#include "reformer/io/safetensors_checksum.h"

namespace reformer {
namespace {

constexpr int64_t kLongestHeader = 100'000'000;  // as in the Rust library

std::string read_header(const InputFile& file) {
  const int64_t size = file.size();
  const std::string& path = file.path();
  require(size > 0, path, ": is empty");
  require(size > kHeaderLengthBytes, path,
          ": is no safetensors file, with only ", size, " bytes");
  const std::string start = file.read(0, kHeaderLengthBytes + 1);
  uint64_t length;
  std::memcpy(&length, start.data(), kHeaderLengthBytes);
  require(start[kHeaderLengthBytes] == '{' && length <= kLongestHeader, path,
          ": is no safetensors file, or its first bytes are damaged");
  const auto needed = kHeaderLengthBytes + static_cast<int64_t>(length);
  require(needed <= size, path, ": truncated: of ", size,
          " bytes, where the header alone needs ", needed);
  return file.read(kHeaderLengthBytes, needed - kHeaderLengthBytes);
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::string& path) : file_(path) {
  const std::string text = read_header(file_);
  data_begin_ = kHeaderLengthBytes + std::ssize(text);
  naming_file(path, [&] {
    header_ = parse_header(text, file_.size() - data_begin_);
    checksum_ = take_checksum(header_.metadata);
  });
}

void SafetensorsReader::read(const TensorEntry& entry,
                             const at::Tensor& to) const {
  read(entry, {0, entry.shape.empty() ? 1 : entry.shape[0]}, to);
}

void SafetensorsReader::read(const TensorEntry& entry, const RowRange& rows,
                             const at::Tensor& to) const {
  auto* bytes = static_cast<unsigned char*>(to.mutable_data_ptr());
  const auto size = static_cast<int64_t>(to.nbytes());
  if (size == 0) return;
  const int64_t row = size / rows.count;
  file_.read(data_begin_ + entry.begin + rows.first * row, bytes, size);
  // C++ knows no third kind of bool.
  require(entry.type != at::kBool ||
              std::all_of(bytes, bytes + size,
                          [](unsigned char byte) { return byte <= 1; }),
          path(), ": tensor '", entry.name,
          "': a BOOL that is neither 0 nor 1");
}

void SafetensorsReader::verify(const std::vector<std::string>& hashes) const {
  require(checksum_.empty() || checksum_ == combined_checksum(header_, hashes),
          path(), ": damaged: its checksum differs");
}

}  // namespace reformer
