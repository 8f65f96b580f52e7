// A run's folder before its first step.
#include <filesystem>
#include <string>

#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/config/config_json.h"
#include "reformer/io/checkpoint.h"
#include "reformer/io/checkpoint_folder.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

bool begun(const fs::path& run) {
  return fs::exists(run / kConfigFile) || !checkpoints_in(run).empty();
}

// A run that was killed before it had written its settings leaves these.
bool is_of_killed_run(const fs::path& path) {
  const fs::path lock = path.parent_path() / kLockFile;
  const bool ours = fs::exists(lock) && is_lock_file(lock.string());
  return is_leftover(path) || (ours && (path.filename() == kLockFile ||
                                        path.filename() == kTokenizerFile));
}

}  // namespace

bool holds_run(const std::string& directory) {
  return with_errors(
      [&] { return fs::is_directory(directory) && begun(directory); });
}

RunLock take_run_directory(const std::string& directory) {
  return with_errors([&] {
    const fs::path run(directory);
    fs::create_directories(run);
    // Asked before anything is written: other people's folder stays as it is.
    if (!begun(run)) {
      for (const fs::path& path : entries_of(run)) {
        require(is_of_killed_run(path), directory,
                ": exists and is not empty, it holds ",
                path.filename().string(), "; choose another folder");
      }
    }
    RunLock lock(directory);
    require(!begun(run), directory,
            ": already holds a run; go on with it (--resume) or choose another "
            "folder");
    remove_leftovers(run);
    return lock;
  });
}

void write_run_settings(const std::string& directory, const Config& config,
                        const std::string& tokenizer) {
  const std::string settings = config_to_json(config) + "\n";  // may throw
  with_errors([&] {
    const fs::path run(directory);
    if (fs::exists(run / kConfigFile)) return;
    if (!tokenizer.empty()) {
      write_file_atomically(run / kTokenizerFile, tokenizer);
    }
    write_file_atomically(run / kConfigFile, settings);
  });
}

RunLock create_run_directory(const std::string& directory, const Config& config,
                             const std::string& tokenizer) {
  config_to_json(config);  // may throw, before there is a folder
  RunLock lock = take_run_directory(directory);
  write_run_settings(directory, config, tokenizer);
  return lock;
}

}  // namespace reformer
