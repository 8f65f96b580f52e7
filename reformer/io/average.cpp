#include "reformer/io/average.h"

#include <filesystem>

#include "reformer/base/errors.h"
#include "reformer/io/checkpoint_folder.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

void add(const std::vector<NamedTensor>& parameters, const std::string& folder,
         const std::string& first_folder, std::vector<NamedTensor>& sums) {
  require(parameters.size() == sums.size(), folder, ": has ", parameters.size(),
          " parameters, ", first_folder, " has ", sums.size(),
          "; checkpoints of one model are required");
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto& [name, value] = parameters[i];
    require(name == sums[i].name && value.sizes() == sums[i].value.sizes(),
            folder, ": has the parameter ", name, " of sizes ", value.sizes(),
            " where ", first_folder, " has ", sums[i].name, " of ",
            sums[i].value.sizes(), "; checkpoints of one model are required");
    sums[i].value.add_(value.to(at::kDouble));
  }
}

}  // namespace

std::vector<std::string> last_checkpoints(const std::string& directory,
                                          int64_t count) {
  return with_errors([&] {
    require(fs::is_directory(directory), directory, ": no such folder");
    auto found = checkpoints_in(directory);
    require(!found.empty(), directory, ": holds no checkpoint");
    // What fine-tuning begins with (train --init) is another run's.
    std::erase_if(found, [](const auto& one) { return one.step == 0; });
    require(static_cast<int64_t>(found.size()) >= count, directory, ": holds ",
            found.size(), found.size() == 1 ? " checkpoint" : " checkpoints",
            ", not ", count, "; train.keep says how many a run keeps");
    std::vector<std::string> folders;
    for (int64_t i = 0; i < count; ++i) {
      folders.push_back(found[static_cast<std::size_t>(i)].folder.string());
    }
    return folders;
  });
}

Checkpoint average_checkpoints(const std::vector<std::string>& folders) {
  require(!folders.empty(), "average: at least one checkpoint is required");
  Checkpoint newest;
  std::vector<NamedTensor> sums;
  for (const auto& folder : folders) {
    auto checkpoint = load_best_model(folder);
    const auto parameters = std::move(checkpoint.parameters);
    checkpoint.parameters.clear();
    if (&folder == &folders.front()) {
      for (const auto& [name, value] : parameters) {
        sums.push_back({name, value.detach().to(at::kDouble)});
      }
      newest = std::move(checkpoint);
      continue;
    }
    add(parameters, folder, folders.front(), sums);
    if (checkpoint.step > newest.step) newest = std::move(checkpoint);
  }
  for (auto& [name, value] : sums) {
    newest.parameters.push_back(
        {name, value.div_(double(folders.size())).to(at::kFloat)});
    value.reset();
  }
  return newest;
}

}  // namespace reformer
