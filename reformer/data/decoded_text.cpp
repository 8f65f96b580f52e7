#include "reformer/data/decoded_text.h"

#include <vector>

#include "reformer/data/byte_file.h"

namespace reformer {
namespace {

Decoded decode_text(Collection& collection, const AppendPayload& append) {
  std::vector<uint8_t> part(1 << 16);
  collection.for_each([&](const std::string&, ByteStream& member) {
    while (const size_t n = member.read(part)) {
      append(std::span(part).first(n));
    }
  });
  return {};
}

}  // namespace

std::shared_ptr<const Bytes> open_text(const std::string& path,
                                       const std::string& cache_folder,
                                       DecodeObserver& observer) {
  if (!is_folder(path) && archive_kind(path) == ArchiveKind::kNone) {
    return std::make_shared<const ByteFile>(path);
  }
  return cached({cache_folder, path, "text"}, decode_text, observer);
}

}  // namespace reformer
