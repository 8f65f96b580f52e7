#include "reformer/io/checkpoint_parts.h"

#include <algorithm>
#include <filesystem>

#include "reformer/base/errors.h"
#include "reformer/io/checkpoint_folder.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

// What each part writes of the parameters: as many bytes as the others, as far
// as whole tensors allow.
TensorFiles files_of_parts(const std::vector<NamedTensor>& parameters,
                           size_t count) {
  double all = 0;
  for (const auto& parameter : parameters) {
    all += double(parameter.value.nbytes());
  }
  TensorFiles files(count);
  for (size_t i = 0; i < count; ++i) {
    files[i].first = part_name(kModelFile, i, count);
  }
  double before = 0;
  for (const auto& parameter : parameters) {
    const double bytes = double(parameter.value.nbytes());
    const double middle = (before + bytes / 2) / std::max(all, 1.0);
    const auto part = std::min(count - 1, size_t(middle * double(count)));
    files[part].second.push_back(parameter);
    before += bytes;
  }
  return files;
}

}  // namespace

Checksums write_part(const std::string& folder, const Checkpoint& checkpoint,
                     const CheckpointPart& part) {
  return with_errors([&] {
    const TensorFiles all{
        files_of_parts(checkpoint.parameters, part.count)[part.index],
        {part_name(kOptimizerFile, part.index, part.count),
         checkpoint.optimizer}};
    TensorFiles own;
    for (const auto& file : all) {
      require_finite(file.second, checkpoint.step);
      if (!file.second.empty()) own.push_back(file);
    }
    return write_tensors(folder, own, checkpoint.step);
  });
}

CheckpointOfParts::CheckpointOfParts(const std::string& directory, int64_t step)
    : directory_(directory), folder_(with_errors([&] {
        remove_leftovers(directory);
        return UnfinishedFolder(fs::path(directory) / folder_name(step));
      })) {}

void CheckpointOfParts::publish(const Checkpoint& checkpoint,
                                const Checksums& checksums, size_t count,
                                bool best) {
  with_errors([&] {
    write_index(folder_.path(), files_of_parts(checkpoint.parameters, count));
    write_state(folder_.path(), checkpoint, checksums,
                best || was_best(directory_, checkpoint.step));
    folder_.commit();
    prune(directory_, checkpoint.step, checkpoint.config.train.keep);
  });
}

}  // namespace reformer
