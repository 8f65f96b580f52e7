#include "reformer/data/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

// What the members hold, joined; counts how often it is asked for.
class Joining {
 public:
  Decode decode() {
    return [this](Collection& collection, const AppendPayload& append) {
      ++times_;
      collection.for_each([&](const std::string&, ByteStream& member) {
        const auto bytes = read_all(member, 1 << 30);
        append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
      });
      return Decoded{"labels", 1};
    };
  }
  int times() const { return times_; }

 private:
  int times_ = 0;
};

std::string text_of(const Bytes& bytes) {
  std::string text(static_cast<size_t>(bytes.size()), '\0');
  bytes.read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  return text;
}

class CacheTest : public testing::Test {
 protected:
  CacheTest() {
    fs::create_directory(source_);
    put_bytes(source_ + "/b", "bbb");
    put_bytes(source_ + "/a", "aa");
  }

  std::string opened(const std::string& form = "joined") {
    return text_of(
        *cached({caches_, source_, form}, joining_.decode(), observer_));
  }

  // Those of `caches_`: the lock and the cache, when all went well.
  size_t files() const {
    const fs::directory_iterator all(caches_);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  const TemporaryFolder folder_;
  const std::string source_ = folder_ / "source";
  const std::string caches_ = folder_ / "some/caches";
  Joining joining_;
  DecodeObserver observer_;
};

TEST_F(CacheTest, ASourceIsDecodedOnce) {
  EXPECT_EQ(opened(), "aabbb");
  EXPECT_EQ(opened(), "aabbb");
  EXPECT_EQ(joining_.times(), 1);
  EXPECT_EQ(files(), 2u);
}

TEST_F(CacheTest, AnotherFormIsAnotherCache) {
  opened("joined");
  opened("otherwise");
  opened("joined");
  EXPECT_EQ(joining_.times(), 2);
}

TEST_F(CacheTest, AChangedSourceIsDecodedAnew) {
  opened();
  put_bytes(source_ + "/c", "c");
  EXPECT_EQ(opened(), "aabbbc");
  fs::remove(source_ + "/a");
  EXPECT_EQ(opened(), "bbbc");
  fs::rename(source_ + "/b", source_ + "/d");
  EXPECT_EQ(opened(), "cbbb");
  put_bytes(source_ + "/c", "longer");
  EXPECT_EQ(opened(), "longerbbb");
  EXPECT_EQ(joining_.times(), 5);
  EXPECT_EQ(files(), 2u);  // the new one takes the place of the old
}

TEST_F(CacheTest, AnotherTimeOrContentAloneIsAChange) {
  opened();
  const auto time = fs::last_write_time(source_ + "/b");
  put_bytes(source_ + "/b", "BBB");
  fs::last_write_time(source_ + "/b", time);
  EXPECT_EQ(opened(), "aaBBB");
  fs::last_write_time(source_ + "/b", time + std::chrono::seconds(1));
  opened();
  EXPECT_EQ(joining_.times(), 3);
}

TEST_F(CacheTest, ADamagedCacheIsDecodedAnew) {
  opened();
  for (const auto& entry : fs::directory_iterator(caches_)) {
    if (entry.path().extension() == ".cache") {
      fs::resize_file(entry.path(), 4100);
    }
  }
  EXPECT_EQ(opened(), "aabbb");
  EXPECT_EQ(joining_.times(), 2);
}

TEST_F(CacheTest, FilesAndFolderAreForTheirOwnerAlone) {
  const mode_t before = ::umask(0);
  opened();
  ::umask(before);
  const auto mode = [](const fs::path& path) {
    struct stat status {};
    ::stat(path.c_str(), &status);
    return status.st_mode & 0777u;
  };
  EXPECT_EQ(mode(caches_), 0700u);
  for (const auto& entry : fs::directory_iterator(caches_)) {
    EXPECT_EQ(mode(entry.path()), 0600u) << entry.path();
  }
}

TEST_F(CacheTest, AFolderThatOthersMayWriteIsAnError) {
  opened();
  for (const mode_t mode : {0770, 0707, 01777}) {
    ::chmod(caches_.c_str(), mode);
    const auto error = error_of([&] { opened(); });
    EXPECT_EQ(error, "the folder " + caches_ +
                         " may be written by others, who could have written "
                         "what it holds; chmod go-w ends that; task.cache "
                         "names another folder");
  }
  ::chmod(caches_.c_str(), 0755);  // as it was made before
  opened();
  EXPECT_EQ(joining_.times(), 1);
  if (::geteuid() != 0) return;  // only root gives folders away
  ASSERT_EQ(::chown(caches_.c_str(), 12345, 12345), 0);
  EXPECT_NE(error_of([&] { opened(); }).find("belongs to another user"),
            std::string::npos);
}

TEST_F(CacheTest, AFileThatOthersMayWriteIsDecodedAnew) {
  opened();
  for (const auto& entry : fs::directory_iterator(caches_)) {
    ::chmod(entry.path().c_str(), 0666);
  }
  EXPECT_EQ(opened(), "aabbb");
  EXPECT_EQ(joining_.times(), 2);
  opened();
  EXPECT_EQ(joining_.times(), 2);
}

// The lock would be made, or taken, somewhere else.
TEST_F(CacheTest, ALinkInPlaceOfTheLockIsAnError) {
  opened();
  fs::path lock;
  for (const auto& entry : fs::directory_iterator(caches_)) {
    if (entry.path().extension() == ".lock") lock = entry.path();
  }
  fs::remove(lock);
  fs::create_symlink(folder_ / "elsewhere", lock);
  put_bytes(source_ + "/c", "c");
  EXPECT_NE(error_of([&] { opened(); }).find("cannot write " + lock.string()),
            std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere"));
}

TEST_F(CacheTest, TheLongestNamesHaveCaches) {
  const std::string source = folder_ / std::string(255, 'n');
  fs::rename(source_, source);
  EXPECT_EQ(text_of(*cached({caches_, source, "joined"}, joining_.decode(),
                            observer_)),
            "aabbb");
}

// A child writes half of a cache and is killed there.
TEST_F(CacheTest, SurvivesAKillWhileItIsWritten) {
  for (int kill = 0; kill < 3; ++kill) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto halfway = [&](Collection&, const AppendPayload& append) {
        append(std::vector<uint8_t>(kCacheBlock + 1, 'x'));
        if (::write(ends[1], "x", 1) != 1) ::_exit(1);
        ::pause();
        return Decoded{};
      };
      cached({caches_, source_, "joined"}, halfway, observer_);
      ::_exit(0);
    }
    char ready;
    ASSERT_EQ(::read(ends[0], &ready, 1), 1);
    EXPECT_EQ(files(), 2u);  // the lock, and what is unfinished
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  EXPECT_EQ(opened(), "aabbb");
  EXPECT_EQ(joining_.times(), 1);
  EXPECT_EQ(files(), 2u);  // and nothing unfinished any more
}

// Four at once: one decodes, slowly, and all read the same.
TEST_F(CacheTest, IsDecodedByOneOfSeveralProcesses) {
  const std::string log = folder_ / "log";
  put_bytes(log, "");
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(::fork());
    ASSERT_GE(children.back(), 0);
    if (children.back() != 0) continue;
    const auto slowly = [&](Collection&, const AppendPayload& append) {
      std::ofstream(log, std::ios::app) << "x";
      for (int part = 0; part < 50; ++part) {
        append(std::vector<uint8_t>(kCacheBlock / 10, uint8_t(part)));
        ::usleep(2000);
      }
      return Decoded{};
    };
    const auto bytes = cached({caches_, source_, "slow"}, slowly, observer_);
    const std::string text = text_of(*bytes);
    bool right = bytes->size() == 50 * (kCacheBlock / 10);
    for (size_t k = 0; k < text.size(); ++k) {
      right = right && size_t(text[k]) == k / (kCacheBlock / 10);
    }
    ::_exit(right ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(bytes_of(log), "x");
}

TEST_F(CacheTest, WhatFailsLeavesNothing) {
  const auto failing = [](Collection&, const AppendPayload& append) -> Decoded {
    append(std::vector<uint8_t>(100));
    throw Error("no more");
  };
  EXPECT_EQ(error_of([&] {
              cached({caches_, source_, "joined"}, failing, observer_);
            }),
            "no more");
  EXPECT_EQ(files(), 1u);  // the lock
}

TEST_F(CacheTest, ErrorsNameTheCulpritAndTheRemedy) {
  const auto error_with = [&](const std::string& folder,
                              const std::string& source) {
    return error_of([&] {
      cached({folder, source, "x"}, joining_.decode(), observer_);
    });
  };
  EXPECT_EQ(
      error_with(caches_, folder_ / "none"),
      "cannot read " + (folder_ / "none") + ": No such file or directory");
  fs::create_directory(folder_ / "empty");
  EXPECT_EQ(error_with(caches_, folder_ / "empty"),
            (folder_ / "empty") + ": a folder without a byte in its files");
  put_bytes(folder_ / "file", "");
  EXPECT_EQ(error_with(folder_ / "file/caches", source_),
            "cannot make the folder " + (folder_ / "file/caches") +
                ": Not a directory; task.cache names another folder");
  const auto nothing = [](Collection&, const AppendPayload&) {
    return Decoded{};
  };
  EXPECT_EQ(error_of([&] {
              cached({caches_, source_, "x"}, nothing, observer_);
            }),
            source_ + " holds no data: 2 files, and nothing in them");
}

TEST_F(CacheTest, AFullDiskIsAnErrorWithARemedy) {
  const FileSizeLimit limit(kCacheBlock / 2);
  const auto large = [](Collection&, const AppendPayload& append) {
    append(std::vector<uint8_t>(2 * kCacheBlock));
    return Decoded{};
  };
  const auto error = error_of([&] {
    cached({caches_, source_, "x"}, large, observer_);
  });
  EXPECT_NE(error.find("cannot write: File too large; task.cache names another "
                       "folder"),
            std::string::npos)
      << error;
}

TEST_F(CacheTest, ProgressIsTold) {
  struct Told : DecodeObserver {
    void decoding(const std::string&, int64_t done, int64_t size) override {
      EXPECT_GE(done, last);
      EXPECT_EQ(size, 5);
      last = done;
      ++times;
    }
    int64_t last = 0;
    int times = 0;
  } told;
  cached({caches_, source_, "x"}, joining_.decode(), told);
  EXPECT_EQ(told.last, 5);
  EXPECT_EQ(told.times, 3);
}

TEST(DefaultCacheFolder, IsBesideOtherCaches) {
  const auto folder_with = [](const char* caches, const char* home) {
    const auto set = [](const char* name, const char* value) {
      value ? ::setenv(name, value, 1) : ::unsetenv(name);
    };
    set("XDG_CACHE_HOME", caches);
    set("HOME", home);
    return default_cache_folder();
  };
  const std::string home = ::getenv("HOME") ? ::getenv("HOME") : "";
  EXPECT_EQ(folder_with("/x", "/h"), "/x/reformer");
  EXPECT_EQ(folder_with(nullptr, "/h"), "/h/.cache/reformer");
  EXPECT_EQ(folder_with("", "/h"), "/h/.cache/reformer");
  EXPECT_NE(error_of([&] { folder_with(nullptr, nullptr); }).find("task.cache"),
            std::string::npos);
  ::setenv("HOME", home.c_str(), 1);
}

TEST(FileList, IsSortedByNameWithoutWhatIsHidden) {
  const TemporaryFolder folder;
  for (const char* name : {"b/2", "b/10", "a/z", ".hidden/x", "c"}) {
    fs::create_directories(fs::path(folder / name).parent_path());
    put_bytes(folder / name, "x");
  }
  put_bytes(folder / ".c", "x");
  std::vector<std::string> names;
  for (const auto& file : files_of(folder.path())) names.push_back(file.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a/z", "b/10", "b/2", "c"}));
}

TEST(FileList, LinksInACircleOrToNothingAreLeftOut) {
  const TemporaryFolder folder;
  put_bytes(folder / "file", "x");
  fs::create_symlink("circle", folder / "circle");
  fs::create_symlink("nothing", folder / "dangling");
  fs::create_symlink(".", folder / "itself");
  fs::create_symlink("file", folder / "link");
  std::vector<std::string> names;
  for (const auto& file : files_of(folder.path())) names.push_back(file.name);
  EXPECT_EQ(names, (std::vector<std::string>{"file", "link"}));
}

}  // namespace
}  // namespace reformer
