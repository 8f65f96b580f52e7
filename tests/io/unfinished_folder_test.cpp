#include "reformer/io/unfinished_folder.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

void put(const fs::path& folder) {
  write_file_atomically(folder / "file", "text");
}

TEST(MakeFolder, IsThereWithAllThatWasPutIntoIt) {
  const TemporaryFolder folder;
  make_folder(folder / "a/b/new", put);
  EXPECT_EQ(read_text(folder / "a/b/new/file"), "text");
  make_folder(folder / "slash/", put);
  EXPECT_EQ(read_text(folder / "slash/file"), "text");
}

TEST(MakeFolder, LeavesNothingWhereFillingItFails) {
  const TemporaryFolder folder;
  const auto fail = [](const fs::path& path) {
    put(path);
    throw std::runtime_error("full");
  };
  EXPECT_THROW(make_folder(folder / "new", fail), std::runtime_error);
  EXPECT_TRUE(fs::is_empty(fs::path(folder / "new").parent_path()));
}

TEST(MakeFolder, TouchesNothingThatIsThere) {
  const TemporaryFolder folder;
  make_folder(folder / "new", put);
  EXPECT_THROW(make_folder(folder / "new", [](const fs::path&) {}), Error);
  EXPECT_THROW(make_folder(folder / "new/", [](const fs::path&) {}), Error);
  EXPECT_EQ(read_text(folder / "new/file"), "text");
}

}  // namespace
}  // namespace reformer
