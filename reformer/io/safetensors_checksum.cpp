#include "reformer/io/safetensors_checksum.h"

#include <nlohmann/json.hpp>

#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/base/xxhash64.h"

namespace reformer {
namespace {

// Two keys, of which a file has both or neither: with one alone, a flipped bit
// in it would look like a file without a checksum.
constexpr char kChecksum[] = "reformer.checksum";
constexpr char kChecksumKind[] = "reformer.checksum_kind";
constexpr char kXxhash64[] = "xxhash64";
constexpr char kNoChecksumYet[] = "0000000000000000";

}  // namespace

std::string hash_of(const at::Tensor& tensor) {
  return xxhash64_hex(tensor.const_data_ptr(),
                      static_cast<int64_t>(tensor.nbytes()));
}

std::string combined_checksum(const SafetensorsHeader& header,
                              const std::vector<std::string>& hashes) {
  nlohmann::json all;
  all["metadata"] = header.metadata;
  all["metadata"].erase(kChecksum);
  all["metadata"][kChecksumKind] = kXxhash64;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const TensorEntry& entry = header.entries[i];
    all["tensors"][entry.name] = {type_name(entry.type), entry.shape,
                                  hashes[i]};
  }
  return xxhash64_hex(all.dump());
}

void put_checksum(Metadata& metadata) {
  put_checksum(metadata, kNoChecksumYet);
}

void put_checksum(Metadata& metadata, const std::string& checksum) {
  metadata[kChecksum] = checksum;
  metadata[kChecksumKind] = kXxhash64;
}

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

}  // namespace reformer
