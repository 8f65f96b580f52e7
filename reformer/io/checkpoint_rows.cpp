#include "reformer/io/checkpoint_rows.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <unordered_map>

#include "reformer/base/errors.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/finite.h"
#include "reformer/io/safetensors_checksum.h"
#include "reformer/io/safetensors_reader.h"

namespace reformer {
namespace {

// Open only while something is read of it: a thousand ranks have as many.
struct StateFile {
  std::string path;
  SafetensorsHeader header;
};
using StateFiles = std::vector<StateFile>;

// Its rows are in one file, or follow one another from file to file.
struct StateTensor {
  std::string name;
  at::ScalarType type;
  std::vector<int64_t> sizes;  // of the whole
  RowRange wanted;
  at::Tensor value;        // the wanted rows
  int64_t rows_taken = 0;  // of files before
};

// In the order in which they come first.
class StateTensors {
 public:
  explicit StateTensors(const StateFiles& files) {
    for (const auto& file : files) {
      for (const auto& entry : file.header.entries) add(file.path, entry);
    }
  }

  std::vector<StateTensor>& all() { return tensors_; }
  StateTensor& of(const TensorEntry& entry) {
    return tensors_[places_.at(entry.name)];
  }

 private:
  void add(const std::string& path, const TensorEntry& entry) {
    const auto [place, fresh] =
        places_.try_emplace(entry.name, tensors_.size());
    if (fresh) {
      tensors_.push_back({entry.name, entry.type, entry.shape, {}, {}});
      return;
    }
    auto& known = tensors_[place->second];
    auto like = known.sizes;
    if (!like.empty() && !entry.shape.empty()) like[0] = entry.shape[0];
    require(!like.empty() && entry.shape == like && entry.type == known.type,
            path, ": tensor '", entry.name,
            "' does not go with that of a file before");
    require(!__builtin_add_overflow(known.sizes[0], entry.shape[0],
                                    &known.sizes[0]),
            path, ": tensor '", entry.name,
            "' has too many rows with those of files before");
  }

  std::vector<StateTensor> tensors_;
  std::unordered_map<std::string, size_t> places_;
};

// Of a file's rows of a tensor the wanted ones, and where they go.
struct Piece {
  RowRange in_file;
  at::Tensor to;
};

Piece next_piece(const TensorEntry& entry, StateTensor& tensor) {
  const int64_t before = tensor.rows_taken;
  tensor.rows_taken += row_count(entry.shape);
  const RowRange& wanted = tensor.wanted;
  const int64_t begin = std::max(wanted.first, before);
  const int64_t end = std::min(wanted.first + wanted.count, tensor.rows_taken);
  if (end <= begin) return {};
  return {{begin - before, end - begin},
          rows_in(tensor.value, {begin - wanted.first, end - begin})};
}

bool is_all(const Piece& piece, const TensorEntry& entry) {
  return piece.in_file.count == row_count(entry.shape);
}

// All of the entry is read, and the piece kept; returns the hash.
std::string read_whole(const SafetensorsReader& file, const TensorEntry& entry,
                       const Piece& piece) {
  const bool kept = piece.to.defined() && is_all(piece, entry);
  const auto tensor = kept ? piece.to : at::empty(entry.shape, entry.type);
  file.read(entry, tensor);
  if (!kept && piece.to.defined()) {
    piece.to.copy_(rows_in(tensor, piece.in_file));
  }
  return hash_of(tensor);
}

StateFiles state_files(const std::filesystem::path& folder,
                       const Checksums& checksums) {
  StateFiles files;
  for (const auto& [name, checksum] : checksums) {
    if (!is_optimizer_file(name)) continue;
    const SafetensorsReader file(folder / name);
    require_checksum(folder / name, file.checksum(), checksums);
    files.push_back({file.path(), file.header()});
  }
  return files;
}

// Of a file's tensors, in their order.
std::vector<Piece> next_pieces(const StateFile& file, StateTensors& tensors) {
  std::vector<Piece> pieces;
  for (const auto& entry : file.header.entries) {
    pieces.push_back(next_piece(entry, tensors.of(entry)));
  }
  return pieces;
}

// Reads a file's pieces; with `whole` also what else is in it, to verify it.
void read_pieces(const StateFile& known, bool whole,
                 const std::vector<Piece>& pieces) {
  const SafetensorsReader file(known.path);
  const auto& entries = known.header.entries;
  std::vector<std::string> hashes;
  std::vector<NamedTensor> kept;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& [rows, to] = pieces[i];
    if (to.defined()) kept.push_back({entries[i].name, to});
    if (whole) {
      hashes.push_back(read_whole(file, entries[i], pieces[i]));
    } else if (to.defined()) {
      file.read(entries[i], rows, to);
    }
  }
  if (whole) file.verify(hashes);
  require_finite(kept, file.path());
}

}  // namespace

std::vector<NamedTensor> read_optimizer_rows(
    const std::filesystem::path& folder, const Checksums& checksums,
    const CheckpointPart& reader, const WantedRows& wanted) {
  const auto files = state_files(folder, checksums);
  StateTensors tensors(files);
  for (auto& tensor : tensors.all()) {
    tensor.wanted = wanted(tensor.name, tensor.sizes);
    auto sizes = tensor.sizes;
    if (!sizes.empty()) sizes[0] = tensor.wanted.count;
    tensor.value = at::empty(sizes, tensor.type);
  }
  for (size_t i = 0; i < files.size(); ++i) {
    const auto pieces = next_pieces(files[i], tensors);
    const auto& entries = files[i].header.entries;
    const bool all = std::equal(pieces.begin(), pieces.end(), entries.begin(),
                                entries.end(), is_all);
    const bool any =
        std::any_of(pieces.begin(), pieces.end(),
                    [](const Piece& piece) { return piece.to.defined(); });
    const bool whole = all || i % reader.count == reader.index;
    if (!whole && !any) continue;
    read_pieces(files[i], whole, pieces);
  }
  std::vector<NamedTensor> found;
  for (auto& tensor : tensors.all()) {
    if (tensor.wanted.count == 0) continue;
    found.push_back({tensor.name, std::move(tensor.value)});
  }
  return found;
}

}  // namespace reformer
