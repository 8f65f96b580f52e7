// Folders that appear whole or not at all, whenever the program is killed.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace reformer {

// A folder that is filled beside `path` and then takes its place; destroyed
// before that, it leaves no trace.
class UnfinishedFolder {
 public:
  explicit UnfinishedFolder(const std::filesystem::path& path);
  ~UnfinishedFolder();
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

  const std::filesystem::path& path() const { return unfinished_; }

  // What was there before steps aside under a name that loading knows, and is
  // removed when the new one is in its place.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path unfinished_;
};

// Makes `directory`, and those above it, of what `fill` writes into the folder
// that it is handed. Throws Error where there is something of that name.
void make_folder(const std::string& directory,
                 const std::function<void(const std::filesystem::path&)>& fill);

}  // namespace reformer
