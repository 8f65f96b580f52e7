#include "reformer/data/byte_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

class ByteFileTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string written(const std::string& content) const {
    const std::string path = folder_ / "file";
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("byte_file_test." + std::to_string(getpid()));
};

std::string bytes_between(const ByteFile& file, int64_t begin, int64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  file.read(begin, bytes);
  return {bytes.begin(), bytes.end()};
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string every_byte(size_t count) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 7 % 256);
  return bytes;
}

// Writes `content` into a pipe while `call` runs with the end to read from.
void with_pipe(const std::string& content,
               const std::function<void(int)>& call) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    const char* at = content.data();
    for (size_t left = content.size(); left > 0;) {
      const ssize_t n = write(ends[1], at, left);
      if (n <= 0) break;
      at += n;
      left -= static_cast<size_t>(n);
    }
    close(ends[1]);
  });
  call(ends[0]);
  writer.join();
  close(ends[0]);
}

TEST_F(ByteFileTest, ReadsAnyRangeOfAnyBytes) {
  const auto content = every_byte(1000);
  const ByteFile file(written(content));
  EXPECT_EQ(file.size(), 1000);
  EXPECT_EQ(bytes_between(file, 0, 1000), content);
  EXPECT_EQ(bytes_between(file, 333, 667), content.substr(333));
  EXPECT_EQ(bytes_between(file, 5, 1), content.substr(5, 1));
  EXPECT_EQ(bytes_between(file, 1000, 0), "");
}

TEST_F(ByteFileTest, ReadsStandardInputToItsEnd) {
  const auto content = every_byte(200001);  // more than a pipe holds
  with_pipe(content, [&](int input) {
    const int before = dup(STDIN_FILENO);
    dup2(input, STDIN_FILENO);
    const ByteFile file("-");
    dup2(before, STDIN_FILENO);
    close(before);
    EXPECT_EQ(file.path(), "standard input");
    EXPECT_EQ(file.size(), 200001);
    EXPECT_EQ(bytes_between(file, 0, 200001), content);
    EXPECT_EQ(bytes_between(file, 100000, 7), content.substr(100000, 7));
  });
}

// As in `--data <(xz -dc text.xz)`.
TEST_F(ByteFileTest, ReadsANamedPipe) {
  with_pipe("some bytes", [&](int input) {
    const ByteFile file("/dev/fd/" + std::to_string(input));
    EXPECT_EQ(bytes_between(file, 0, file.size()), "some bytes");
  });
}

TEST_F(ByteFileTest, ErrorsNameThePathAndTheReason) {
  const std::string missing = folder_ / "missing";
  EXPECT_EQ(error_of([&] { ByteFile{missing}; }),
            "cannot read " + missing + ": No such file or directory");
  EXPECT_EQ(error_of([&] { ByteFile{folder_}; }),
            "cannot read " + folder_.string() + ": it is a directory");
  // Opens, and fails only when it is read.
  EXPECT_EQ(error_of([&] { ByteFile{"/proc/self/mem"}; }),
            "cannot read /proc/self/mem: Input/output error");
  const auto empty = written("");
  EXPECT_EQ(error_of([&] { ByteFile{empty}; }), empty + " is empty");
}

// They have no end, and would fill the memory.
TEST_F(ByteFileTest, DevicesAreErrors) {
  for (const std::string device : {"/dev/zero", "/dev/urandom"}) {
    EXPECT_EQ(error_of([&] { ByteFile{device}; }),
              "cannot read " + device + ": it is a device, not a file");
  }
  EXPECT_EQ(error_of([&] { ByteFile{"/dev/null"}; }), "/dev/null is empty");
}

TEST_F(ByteFileTest, OfAPipeNoMoreIsKeptThanTheMemoryBears) {
  const std::string content = every_byte(60000);  // which a pipe holds
  with_pipe(content, [&](int input) {
    const auto path = "/dev/fd/" + std::to_string(input);
    EXPECT_EQ(error_of([&] { ByteFile(path, 59999); }),
              "cannot read " + path +
                  ": it has more than 59999 bytes, a quarter of this machine's "
                  "memory; write them to a file");
  });
  with_pipe(content, [&](int input) {
    const ByteFile file("/dev/fd/" + std::to_string(input), 60000);
    EXPECT_EQ(bytes_between(file, 0, file.size()), content);
  });
}

TEST_F(ByteFileTest, AFileThatShrinksIsAnError) {
  const auto path = written(every_byte(100));
  const ByteFile file(path);
  std::filesystem::resize_file(path, 50);
  EXPECT_EQ(
      error_of([&] { bytes_between(file, 0, 100); }),
      "cannot read " + path + ": it has become shorter than its 100 bytes");
}

}  // namespace
}  // namespace reformer
