#include "cli/commands/average.h"

#include <memory>
#include <string>
#include <vector>

#include "cli/screen/output.h"
#include "reformer/base/errors.h"
#include "reformer/io/average.h"

namespace reformer::cli {
namespace {

constexpr int64_t kLast = 5;

struct AverageOptions {
  std::vector<std::string> folders;
  int64_t last = 0;  // 0: not given
  std::string out;
};

// A run's checkpoints, or the folders as they are given.
std::vector<std::string> folders_of(const AverageOptions& options) {
  const bool several = options.folders.size() > 1;
  require(!several || options.last == 0,
          "--last is of one run; of several folders all are averaged");
  if (several) return options.folders;
  return last_checkpoints(options.folders[0],
                          options.last > 0 ? options.last : kLast);
}

void run_average(const AverageOptions& options) {
  const auto folders = folders_of(options);
  const auto checkpoint = average_checkpoints(folders);
  export_model(options.out, checkpoint, at::kFloat, /*most_bytes=*/0);
  print("the mean of " + std::to_string(folders.size()) +
        (folders.size() == 1 ? " checkpoint" : " checkpoints") +
        ", the newest of step " + std::to_string(checkpoint.step) + ", is in " +
        options.out + "; it is used as a run is\n");
}

}  // namespace

void add_average(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand(
      "average",
      "Write the mean of a run's last checkpoints, a better model than the "
      "last of them");
  const auto options = std::make_shared<AverageOptions>();
  command
      .add_option("DIR", options->folders,
                  "folder of a run; or several: of checkpoints, of models")
      ->required()
      ->check(not_empty());
  command
      .add_option("--last", options->last,
                  "how many of its checkpoints; train.keep says how many a run "
                  "keeps [" +
                      std::to_string(kLast) + "]")
      ->check(whole_number(1, 1000))
      ->type_name("N");
  add_new_folder(command, options->out);
  command.callback(
      [options, &action] { action = [options] { run_average(*options); }; });
}

}  // namespace reformer::cli
