#include "reformer/io/unfinished_folder.h"

#include <system_error>

#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/io/checkpoint_folder.h"

namespace reformer {

namespace fs = std::filesystem;

UnfinishedFolder::UnfinishedFolder(const fs::path& path)
    : path_(path), unfinished_(unfinished_name(path)) {
  fs::create_directory(unfinished_);
}

UnfinishedFolder::~UnfinishedFolder() {
  std::error_code ignored;
  fs::remove_all(unfinished_, ignored);
}

// No rename replaces a folder that is not empty, hence the step aside.
void UnfinishedFolder::commit() {
  const fs::path replaced = replaced_name(path_);
  if (fs::exists(path_)) {
    if (fs::exists(replaced)) remove_folder(replaced);
    fs::rename(path_, replaced);
  }
  fs::rename(unfinished_, path_);
  sync_folder(path_.parent_path());
  if (fs::exists(replaced)) remove_folder(replaced);
}

void make_folder(const std::string& directory,
                 const std::function<void(const fs::path&)>& fill) {
  fs::path path = fs::absolute(directory);
  if (!path.has_filename()) path = path.parent_path();  // "folder/"
  require(!fs::exists(path), directory,
          ": exists already; choose another folder");
  fs::create_directories(path.parent_path());
  UnfinishedFolder folder(path);
  fill(folder.path());
  folder.commit();
}

}  // namespace reformer
