#include "reformer/io/safetensors.h"

#include <ATen/ops/empty.h>

#include <bit>
#include <cstring>

#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/io/safetensors_checksum.h"
#include "reformer/io/safetensors_header.h"
#include "reformer/io/safetensors_reader.h"

namespace reformer {

namespace {

static_assert(std::endian::native == std::endian::little);

SafetensorsHeader lay_out(const std::vector<NamedTensor>& tensors,
                          const Metadata& metadata) {
  SafetensorsHeader header{metadata, {}};
  put_checksum(header.metadata);
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
  std::string bytes(kHeaderLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kHeaderLengthBytes);
  return bytes + header;
}

}  // namespace

std::string write_safetensors(const std::string& path,
                              const std::vector<NamedTensor>& tensors,
                              const Metadata& metadata) {
  SafetensorsHeader header;
  const auto render = [&] { return length_and(render_header(header)); };
  const int64_t data_begin = naming_file(path, [&] {
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
    hashes.push_back(hash_of(value));
    file.write(data_begin + header.entries[i].begin, value.const_data_ptr(),
               size);
  }
  const std::string checksum = combined_checksum(header, hashes);
  put_checksum(header.metadata, checksum);
  const std::string head = render();
  file.write(0, head.data(), std::ssize(head));
  file.commit();
  return checksum;
}

SafetensorsFile read_safetensors(const std::string& path) {
  const SafetensorsReader file(path);
  SafetensorsFile result{{}, file.header().metadata, file.checksum()};
  std::vector<std::string> hashes;
  for (const auto& entry : file.header().entries) {
    at::Tensor tensor = at::empty(entry.shape, entry.type);
    file.read(entry, tensor);
    if (!result.checksum.empty()) hashes.push_back(hash_of(tensor));
    result.tensors.push_back({entry.name, std::move(tensor)});
  }
  file.verify(hashes);
  return result;
}

}  // namespace reformer
