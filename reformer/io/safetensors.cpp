#include "reformer/io/safetensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/base/xxhash64.h"
#include "reformer/io/safetensors_header.h"

namespace reformer {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kLongestHeader = 100'000'000;  // as in the Rust library

// Two keys, of which a file has both or neither: with one alone, a flipped bit
// in it would look like a file without a checksum.
constexpr char kChecksum[] = "reformer.checksum";
constexpr char kChecksumKind[] = "reformer.checksum_kind";
constexpr char kXxhash64[] = "xxhash64";
constexpr char kNoChecksumYet[] = "0000000000000000";

// The header's functions do not know which file they talk of.
template <class Function>
auto naming(const std::string& path, Function function) {
  try {
    return function();
  } catch (const Unreadable& error) {
    throw Unreadable(path + ": " + error.what());
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
}

// Of the parsed contents, by name, so that a file that another program wrote
// again, in another order, is still right. `hashes` are those of the entries'
// bytes.
std::string combined_checksum(const SafetensorsHeader& header,
                              const std::vector<std::string>& hashes) {
  nlohmann::json all;
  all["metadata"] = header.metadata;
  all["metadata"].erase(kChecksum);
  for (size_t i = 0; i < hashes.size(); ++i) {
    const TensorEntry& entry = header.entries[i];
    all["tensors"][entry.name] = {type_name(entry.type), entry.shape,
                                  hashes[i]};
  }
  return xxhash64_hex(all.dump());
}

SafetensorsHeader lay_out(const std::vector<NamedTensor>& tensors,
                          const Metadata& metadata) {
  SafetensorsHeader header{metadata, {}};
  header.metadata[kChecksum] = kNoChecksumYet;
  header.metadata[kChecksumKind] = kXxhash64;
  int64_t end = 0;
  for (const auto& [name, value] : tensors) {
    require(value.defined() && value.layout() == at::kStrided, "tensor '", name,
            "' has no values to write");
    const int64_t begin = end;
    end += static_cast<int64_t>(value.nbytes());
    header.entries.push_back(
        {name, value.scalar_type(), value.sizes().vec(), begin, end});
  }
  return header;
}

std::string length_and(const std::string& header) {
  const uint64_t length = header.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  return bytes + header;
}

std::string read_header(const InputFile& file) {
  const int64_t size = file.size();
  const std::string& path = file.path();
  require(size > 0, path, ": is empty");
  require(size > kLengthBytes, path, ": is no safetensors file, with only ",
          size, " bytes");
  const std::string start = file.read(0, kLengthBytes + 1);
  uint64_t length;
  std::memcpy(&length, start.data(), kLengthBytes);
  require(start[kLengthBytes] == '{' && length <= kLongestHeader, path,
          ": is no safetensors file, or its first bytes are damaged");
  const auto needed = kLengthBytes + static_cast<int64_t>(length);
  require(needed <= size, path, ": truncated: of ", size,
          " bytes, where the header alone needs ", needed);
  return file.read(kLengthBytes, needed - kLengthBytes);
}

at::Tensor read_tensor(const InputFile& file, int64_t data_begin,
                       const TensorEntry& entry) {
  at::Tensor tensor = at::empty(entry.shape, entry.type);
  auto* bytes = static_cast<unsigned char*>(tensor.mutable_data_ptr());
  const int64_t size = entry.end - entry.begin;
  file.read(data_begin + entry.begin, bytes, size);
  // C++ knows no third kind of bool.
  require(entry.type != at::kBool ||
              std::all_of(bytes, bytes + size,
                          [](unsigned char byte) { return byte <= 1; }),
          file.path(), ": tensor '", entry.name,
          "': a BOOL that is neither 0 nor 1");
  return tensor;
}

// Moves the checksum out of the metadata; empty where there is none.
std::string take_checksum(Metadata& metadata) {
  const auto checksum = metadata.extract(kChecksum);
  const auto kind = metadata.extract(kChecksumKind);
  require(checksum.empty() == kind.empty(),
          "the header is damaged: only one of ", kChecksum, " and ",
          kChecksumKind);
  if (checksum.empty()) return {};
  if (kind.mapped() == kXxhash64) return checksum.mapped();
  throw Unreadable("a checksum of an unknown kind: " + kind.mapped() +
                   "; a newer program may have written it");
}

}  // namespace

std::string write_safetensors(const std::string& path,
                              const std::vector<NamedTensor>& tensors,
                              const Metadata& metadata) {
  SafetensorsHeader header;
  const auto render = [&] { return length_and(render_header(header)); };
  const int64_t data_begin = naming(path, [&] {
    header = lay_out(tensors, metadata);
    return std::ssize(render());
  });
  AtomicFile file(path);
  std::vector<std::string> hashes;
  // The header comes last: it holds the checksum, and the data are visited
  // only once.
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor value = tensors[i].value.detach().cpu().contiguous();
    const auto size = static_cast<int64_t>(value.nbytes());
    hashes.push_back(xxhash64_hex(value.const_data_ptr(), size));
    file.write(data_begin + header.entries[i].begin, value.const_data_ptr(),
               size);
  }
  const std::string checksum = combined_checksum(header, hashes);
  header.metadata[kChecksum] = checksum;
  const std::string head = render();
  file.write(0, head.data(), std::ssize(head));
  file.commit();
  return checksum;
}

SafetensorsFile read_safetensors(const std::string& path) {
  const InputFile file(path);
  const std::string text = read_header(file);
  const int64_t data_begin = kLengthBytes + std::ssize(text);
  SafetensorsFile result;
  const SafetensorsHeader header = naming(path, [&] {
    SafetensorsHeader parsed = parse_header(text, file.size() - data_begin);
    result.metadata = parsed.metadata;
    result.checksum = take_checksum(result.metadata);
    return parsed;
  });
  const bool verify = !result.checksum.empty();
  std::vector<std::string> hashes;
  for (const TensorEntry& entry : header.entries) {
    at::Tensor tensor = read_tensor(file, data_begin, entry);
    if (verify) {
      hashes.push_back(xxhash64_hex(tensor.const_data_ptr(), tensor.nbytes()));
    }
    result.tensors.push_back({entry.name, std::move(tensor)});
  }
  require(!verify || result.checksum == combined_checksum(header, hashes), path,
          ": damaged: its checksum differs");
  return result;
}

}  // namespace reformer
