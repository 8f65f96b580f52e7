#include "reformer/io/checkpoint_files.h"

#include <nlohmann/json.hpp>

#include "reformer/base/atomic_file.h"
#include "reformer/base/xxhash64.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/checkpoint_state.h"
#include "reformer/io/finite.h"
#include "reformer/io/safetensors.h"

namespace reformer {

namespace fs = std::filesystem;

void require_checksum(const fs::path& path, const std::string& checksum,
                      const Checksums& checksums) {
  const auto known = checksums.find(path.filename());
  require(known != checksums.end() && known->second == checksum, path.string(),
          ": is not the file that ", kStateFile, " beside it belongs to");
}

void require_finite(const std::vector<NamedTensor>& tensors,
                    const fs::path& path) {
  const std::string wrong = first_not_finite(tensors);
  require(wrong.empty(), path.string(), ": ", wrong,
          " holds NaN or infinity: the model has diverged and is of no use");
}

void require_finite(const std::vector<NamedTensor>& tensors, int64_t step) {
  const std::string wrong = first_not_finite(tensors);
  if (wrong.empty()) return;
  throw NotFinite("checkpoint: " + wrong + " is not finite after step " +
                  std::to_string(step) + ", and is not saved");
}

Checksums write_tensors(const fs::path& folder, const TensorFiles& files,
                        int64_t step) {
  Checksums checksums;
  const Metadata metadata{{"format", "pt"}, {"step", std::to_string(step)}};
  for (const auto& [name, tensors] : files) {
    checksums[name] = write_safetensors(folder / name, tensors, metadata);
  }
  return checksums;
}

void write_state(const fs::path& folder, const Checkpoint& checkpoint,
                 const Checksums& checksums, bool best) {
  CheckpointState state{checkpoint, checksums};
  if (!checkpoint.tokenizer.empty()) {
    write_file_atomically(folder / kTokenizerFile, checkpoint.tokenizer);
    state.checksums[kTokenizerFile] = xxhash64_hex(checkpoint.tokenizer);
  }
  if (best) write_file_atomically(folder / kBestMark, "");
  write_file_atomically(folder / kStateFile, render_state(state));
}

void write_index(const fs::path& folder, const TensorFiles& files) {
  nlohmann::ordered_json index;
  int64_t bytes = 0;
  for (const auto& [file, tensors] : files) {
    for (const auto& [name, value] : tensors) {
      index["weight_map"][name] = file;
      bytes += static_cast<int64_t>(value.nbytes());
    }
  }
  index["metadata"]["total_size"] = bytes;
  write_file_atomically(folder / kIndexFile, index.dump(2) + "\n");
}

}  // namespace reformer
