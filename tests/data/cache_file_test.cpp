#include "reformer/data/cache_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>

#include "reformer/base/xxhash64.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

constexpr CacheKey kKey = {4, 2};
constexpr CacheKey kOtherKey = {4, 2, 1};
constexpr int64_t kHeader = 4096;

std::vector<uint8_t> some_bytes(int64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(i * 7 + i / 251);
  }
  return bytes;
}

void write_cache(const std::string& path, const std::vector<uint8_t>& payload,
                 const std::string& labels = "labels") {
  CacheWriter writer(path, kKey);
  writer.append(std::span(payload).first(payload.size() / 3));
  writer.append(std::span(payload).subspan(payload.size() / 3));
  writer.finish(labels, /*skipped=*/3);
}

std::vector<uint8_t> read(const CacheFile& cache, int64_t begin,
                          int64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  cache.read(begin, bytes);
  return bytes;
}

void flip(const std::string& path, int64_t place) {
  auto bytes = bytes_of(path);
  bytes[static_cast<size_t>(place)] ^= 1;
  put_bytes(path, bytes);
}

TEST(CacheFile, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  for (const int64_t size : {int64_t{1}, kCacheBlock - 1, kCacheBlock,
                             kCacheBlock + 1, 3 * kCacheBlock + 77}) {
    const auto payload = some_bytes(size);
    write_cache(folder / "cache", payload);
    const auto cache = CacheFile::open(folder / "cache", kKey);
    ASSERT_NE(cache, nullptr);
    EXPECT_EQ(cache->size(), size);
    EXPECT_EQ(cache->labels(), "labels");
    EXPECT_EQ(cache->skipped(), 3);
    EXPECT_EQ(read(*cache, 0, size), payload);
    EXPECT_EQ(read(*cache, size - 1, 1)[0], payload.back());
    const int64_t middle = size / 2;
    EXPECT_EQ(read(*cache, middle, size - middle),
              std::vector(payload.begin() + middle, payload.end()));
    EXPECT_TRUE(read(*cache, size, 0).empty());
  }
}

TEST(CacheFile, IsNotThereBeforeItIsFinished) {
  const TemporaryFolder folder;
  {
    CacheWriter writer(folder / "cache", kKey);
    writer.append(some_bytes(2 * kCacheBlock));
    EXPECT_EQ(CacheFile::open(folder / "cache", kKey), nullptr);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CacheFile, OfAnotherSourceIsNone) {
  const TemporaryFolder folder;
  write_cache(folder / "cache", some_bytes(100));
  EXPECT_EQ(CacheFile::open(folder / "cache", kOtherKey), nullptr);
  EXPECT_EQ(CacheFile::open(folder / "other", kKey), nullptr);
  EXPECT_EQ(CacheFile::open(folder.path(), kKey), nullptr);
}

TEST(CacheFile, CutShortOrLengthenedIsNone) {
  const TemporaryFolder folder;
  write_cache(folder / "cache", some_bytes(1000));
  const auto whole = bytes_of(folder / "cache");
  for (const size_t size : {size_t{0}, size_t{20}, size_t{4096},
                            whole.size() / 2, whole.size() - 1}) {
    put_bytes(folder / "cache", whole.substr(0, size));
    EXPECT_EQ(CacheFile::open(folder / "cache", kKey), nullptr) << size;
  }
  put_bytes(folder / "cache", whole + "x");
  EXPECT_EQ(CacheFile::open(folder / "cache", kKey), nullptr);
}

TEST(CacheFile, ADamagedHeaderOrTailIsNone) {
  const TemporaryFolder folder;
  for (const int64_t place : {0, 9, 39, 41, 49, 57, 65, 73, int(kHeader) + 1000,
                              int(kHeader) + 1006, int(kHeader) + 1013}) {
    write_cache(folder / "cache", some_bytes(1000));
    flip(folder / "cache", place);
    EXPECT_EQ(CacheFile::open(folder / "cache", kKey), nullptr) << place;
  }
}

// With a hash that fits what it claims.
void forge(const std::string& path, int64_t payload, int64_t labels,
           int64_t skipped = 0) {
  auto bytes = bytes_of(path);
  CacheHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.payload_bytes = payload;
  header.label_bytes = labels;
  header.skipped = skipped;
  header.hash = xxhash64(&header, offsetof(CacheHeader, hash));
  std::memcpy(bytes.data(), &header, sizeof header);
  put_bytes(path, bytes);
}

TEST(CacheFile, AHeaderThatClaimsSizesTheFileHasNotIsNone) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const TemporaryFolder folder;
  write_cache(folder / "cache", some_bytes(1000));
  // 1000, 6 labels and a hash of 8 bytes: the sum is right in each.
  const std::pair<int64_t, int64_t> claims[] = {
      {-1, 1015},
      {-1000, 2006},
      {1014, -8},
      {0, -1},
      {1015, -9},
      {kMost, 0},
      {kMost, -kMost},
      {kLeast, kMost},
      {kMost - 5000, kLeast},
      {int64_t{1} << 62, -(int64_t{1} << 62)},
      {1000, kMost},
      {1000, -1},
      {kLeast, kLeast}};
  for (const auto& [payload, labels] : claims) {
    forge(folder / "cache", payload, labels);
    EXPECT_EQ(CacheFile::open(folder / "cache", kKey), nullptr)
        << payload << " " << labels;
  }
  forge(folder / "cache", 1000, 6, /*skipped=*/-1);
  EXPECT_EQ(CacheFile::open(folder / "cache", kKey), nullptr);
  forge(folder / "cache", 1000, 6);
  EXPECT_NE(CacheFile::open(folder / "cache", kKey), nullptr);
}

TEST(CacheFile, IsForItsOwnerAlone) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(0);
  write_cache(folder / "cache", some_bytes(10));
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "cache").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
}

TEST(CacheFile, WhatOthersCouldHaveWrittenIsNone) {
  const TemporaryFolder folder;
  const std::string path = folder / "cache";
  write_cache(path, some_bytes(10));
  EXPECT_NE(CacheFile::open(path, kKey), nullptr);
  for (const mode_t mode : {0620, 0602, 0666}) {
    ::chmod(path.c_str(), mode);
    EXPECT_EQ(CacheFile::open(path, kKey), nullptr) << mode;
  }
  ::chmod(path.c_str(), 0644);
  EXPECT_NE(CacheFile::open(path, kKey), nullptr);
  std::filesystem::create_symlink(path, folder / "link");
  EXPECT_EQ(CacheFile::open(folder / "link", kKey), nullptr);
  if (::geteuid() != 0) return;  // only root gives files away
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_EQ(CacheFile::open(path, kKey), nullptr);
}

// A mapped one would end the program with SIGBUS.
TEST(CacheFile, ThatShrinksWhileItIsReadIsAnError) {
  const TemporaryFolder folder;
  write_cache(folder / "cache", some_bytes(3 * kCacheBlock));
  const auto cache = CacheFile::open(folder / "cache", kKey);
  ASSERT_NE(cache, nullptr);
  read(*cache, 0, 10);
  std::filesystem::resize_file(folder / "cache", kHeader + 5);
  for (const int64_t begin : {int64_t{0}, 2 * kCacheBlock}) {
    const auto error = error_of([&] { read(*cache, begin, 10); });
    EXPECT_NE(error.find("it has become shorter"), std::string::npos) << error;
  }
}

TEST(CacheFile, PlacesBeyondThePayloadAreErrors) {
  const TemporaryFolder folder;
  write_cache(folder / "cache", some_bytes(100));
  const auto cache = CacheFile::open(folder / "cache", kKey);
  ASSERT_NE(cache, nullptr);
  for (const int64_t begin :
       {int64_t{-1}, int64_t{91}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_NE(error_of([&] { read(*cache, begin, 10); }), "") << begin;
  }
}

TEST(CacheFile, ADamagedBlockIsAnErrorOfThatBlock) {
  const TemporaryFolder folder;
  const auto payload = some_bytes(3 * kCacheBlock);
  write_cache(folder / "cache", payload);
  flip(folder / "cache", kHeader + kCacheBlock + 5);
  const auto cache = CacheFile::open(folder / "cache", kKey);
  ASSERT_NE(cache, nullptr);
  EXPECT_EQ(read(*cache, 0, 10),
            std::vector(payload.begin(), payload.begin() + 10));
  EXPECT_EQ(read(*cache, 2 * kCacheBlock, 1)[0], payload[2 * kCacheBlock]);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(error_of([&] { read(*cache, kCacheBlock - 1, 2); }),
              folder / "cache" +
                  ": damaged at byte 262144 of what was "
                  "decoded; remove the file, and it is decoded anew");
  }
}

// Kilobytes of the program's resident pages.
int64_t resident() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmRSS:" && status >> kilobytes) return kilobytes;
  }
  return 0;
}

// Read here and there until all was read: 96 MiB. On a disk, since what is in
// memory may be small.
TEST(CacheFile, IsNeverInMemoryWhole) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer keeps what was freed";
#endif
  const std::string path =
      testing::TempDir() + "/cache_file_test." + std::to_string(getpid());
  const int64_t blocks = 384;
  {
    const auto part = some_bytes(kCacheBlock);
    CacheWriter writer(path, kKey);
    for (int64_t block = 0; block < blocks; ++block) writer.append(part);
    writer.finish("", 0);
  }
  const int64_t before = resident();
  const auto cache = CacheFile::open(path, kKey);
  std::filesystem::remove(path);
  ASSERT_NE(cache, nullptr);
  std::vector<uint8_t> window(65536);
  int64_t most = 0;
  for (int64_t i = 0; i < 3000; ++i) {
    cache->read(i * 1234567 % (cache->size() - 65536), window);
    most = std::max(most, resident() - before);
  }
  EXPECT_LT(most, 8 * 1024);
}

}  // namespace
}  // namespace reformer
