#include "reformer/data/cache_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/train/file_support.h"
#include "tests/train/temporary_folder.h"

namespace reformer {
namespace {

constexpr uint64_t kSignature = 42;
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
  CacheWriter writer(path, kSignature);
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
    const auto cache = CacheFile::open(folder / "cache", kSignature);
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
    CacheWriter writer(folder / "cache", kSignature);
    writer.append(some_bytes(2 * kCacheBlock));
    EXPECT_EQ(CacheFile::open(folder / "cache", kSignature), nullptr);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CacheFile, OfAnotherSourceIsNone) {
  const TemporaryFolder folder;
  write_cache(folder / "cache", some_bytes(100));
  EXPECT_EQ(CacheFile::open(folder / "cache", kSignature + 1), nullptr);
  EXPECT_EQ(CacheFile::open(folder / "other", kSignature), nullptr);
  EXPECT_EQ(CacheFile::open(folder.path(), kSignature), nullptr);
}

TEST(CacheFile, CutShortOrLengthenedIsNone) {
  const TemporaryFolder folder;
  write_cache(folder / "cache", some_bytes(1000));
  const auto whole = bytes_of(folder / "cache");
  for (const size_t size : {size_t{0}, size_t{20}, size_t{4096},
                            whole.size() / 2, whole.size() - 1}) {
    put_bytes(folder / "cache", whole.substr(0, size));
    EXPECT_EQ(CacheFile::open(folder / "cache", kSignature), nullptr) << size;
  }
  put_bytes(folder / "cache", whole + "x");
  EXPECT_EQ(CacheFile::open(folder / "cache", kSignature), nullptr);
}

TEST(CacheFile, ADamagedHeaderOrTailIsNone) {
  const TemporaryFolder folder;
  for (const int64_t place : {0, 9, 17, 25, 33, 41, 49, int(kHeader) + 1000,
                              int(kHeader) + 1006, int(kHeader) + 1013}) {
    write_cache(folder / "cache", some_bytes(1000));
    flip(folder / "cache", place);
    EXPECT_EQ(CacheFile::open(folder / "cache", kSignature), nullptr) << place;
  }
}

TEST(CacheFile, ADamagedBlockIsAnErrorOfThatBlock) {
  const TemporaryFolder folder;
  const auto payload = some_bytes(3 * kCacheBlock);
  write_cache(folder / "cache", payload);
  flip(folder / "cache", kHeader + kCacheBlock + 5);
  const auto cache = CacheFile::open(folder / "cache", kSignature);
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

// Read here and there until all was read: 96 MiB, of which 64 may stay. On a
// disk, since what is in memory may be small.
TEST(CacheFile, IsNeverInMemoryWhole) {
  const std::string path =
      testing::TempDir() + "/cache_file_test." + std::to_string(getpid());
  const int64_t blocks = 384;
  {
    const auto part = some_bytes(kCacheBlock);
    CacheWriter writer(path, kSignature);
    for (int64_t block = 0; block < blocks; ++block) writer.append(part);
    writer.finish("", 0);
  }
  const int64_t before = resident();
  const auto cache = CacheFile::open(path, kSignature);
  std::filesystem::remove(path);
  ASSERT_NE(cache, nullptr);
  std::vector<uint8_t> window(65536);
  int64_t most = 0;
  for (int64_t i = 0; i < 3000; ++i) {
    cache->read(i * 1234567 % (cache->size() - 65536), window);
    most = std::max(most, resident() - before);
  }
  EXPECT_GT(most, 10 * 1024);  // or nothing was measured
  EXPECT_LT(most, 80 * 1024);
}

}  // namespace
}  // namespace reformer
