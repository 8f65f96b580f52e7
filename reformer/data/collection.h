// Many files as one: a file, a folder or an archive, whatever holds whatever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reformer/data/archive.h"
#include "reformer/data/file_list.h"

namespace reformer {

class Collection {
 public:
  // What files_of lists of `path`; throws Error as it does, and for none.
  explicit Collection(const std::string& path);
  // These files, whatever `path` calls them.
  Collection(const std::string& path, const std::vector<std::string>& files);

  const std::string& path() const { return path_; }
  const std::vector<ListedFile>& files() const { return files_; }

  // Calls visit(name, member) for every file, and for every member of those
  // that are archives, and of archives in them. A folder's files come in the
  // order of their names, an archive's in its own. A name is the way from
  // `path` to the member: "train/cats.zip/1.png". What is hidden in an archive
  // is left out as it is in a folder. Throws Error for what cannot be read.
  void for_each(const VisitMember& visit);

  // How far for_each is: bytes of the files, read and in all.
  int64_t done() const { return done_; }
  int64_t size() const { return size_; }
  // For whoever reads its bytes by other means.
  void skip_to(int64_t done) { done_ = done; }

 private:
  void take_size();
  void visit_file(const ListedFile& file, int64_t before,
                  const VisitMember& visit,
                  const std::function<void(size_t)>& count);

  std::string path_;
  std::vector<ListedFile> files_;
  int64_t done_ = 0;
  int64_t size_ = 0;
};

}  // namespace reformer
