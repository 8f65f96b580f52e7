#include "reformer/base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() { fs::create_directory(folder_); }
  ~AtomicFileTest() override { fs::remove_all(folder_); }

  static std::string content(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static unsigned mode(const fs::path& path) {
    struct stat status {};
    ::stat(path.c_str(), &status);
    return status.st_mode & 0777;
  }
  // The one file that is there.
  fs::path only() const { return *fs::directory_iterator(folder_); }

  const fs::path folder_ = fs::path(testing::TempDir()) /
                           ("atomic_file_test." + std::to_string(getpid()));
};

TEST_F(AtomicFileTest, UnfinishedNamesAreKnownAndNoTwoAreEqual) {
  const fs::path path = folder_ / "model.bin";
  const auto one = unfinished_name(path);
  EXPECT_NE(one, unfinished_name(path));
  EXPECT_TRUE(is_unfinished(one));
  EXPECT_FALSE(is_unfinished(path));
  EXPECT_EQ(one.parent_path(), folder_);
  EXPECT_TRUE(one.filename().string().starts_with(
      ".tmp-model.bin-" + std::to_string(getpid()) + "-"));
}

TEST_F(AtomicFileTest, TheLongestNamesCanBeWritten) {
  const fs::path path = folder_ / std::string(255, 'n');
  write_file_atomically(path, "text");
  EXPECT_EQ(content(path), "text");
}

// A link where the old names were would have been written through.
TEST_F(AtomicFileTest, WritesThroughNoLinkThatWasPutThereBefore) {
  const fs::path victim = folder_ / "victim";
  std::ofstream(victim) << "kept";
  fs::create_symlink(victim, folder_ / (".tmp-x-" + std::to_string(getpid())));
  write_file_atomically(folder_ / "x", "text");
  EXPECT_EQ(content(victim), "kept");
  EXPECT_EQ(content(folder_ / "x"), "text");
}

TEST_F(AtomicFileTest, PermissionsAreThoseAskedForLessTheUmask) {
  const mode_t before = ::umask(027);
  write_file_atomically(folder_ / "open", "x");
  AtomicFile secret(folder_ / "secret", 0600);
  secret.commit();
  ::umask(before);
  EXPECT_EQ(mode(folder_ / "open"), 0640u);
  EXPECT_EQ(mode(folder_ / "secret"), 0600u);
}

TEST_F(AtomicFileTest, TwoWritersOfOneFileDoNotMeet) {
  AtomicFile one(folder_ / "x");
  AtomicFile other(folder_ / "x");
  one.write(0, "1", 1);
  other.write(0, "2", 1);
  one.commit();
  EXPECT_EQ(content(folder_ / "x"), "1");
  other.commit();
  EXPECT_EQ(content(folder_ / "x"), "2");
  EXPECT_EQ(only(), folder_ / "x");
}

}  // namespace
}  // namespace reformer
