// Damage of every kind in every kind of archive, and archives made to harm.
#include "reformer/data/archive.h"

#include <gtest/gtest.h>

#include "reformer/base/xxhash64.h"
#include "reformer/data/archive_faults.h"
#include "reformer/data/decoded_text.h"
#include "tests/data/string_stream.h"
#include "tests/formats/archive_writer.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

// Words, so that it is compressed into blocks and not only stored.
std::string some_words(size_t size) {
  std::string text;
  for (uint32_t i = 1; text.size() < size; i = i * 1664525 + 1013904223) {
    text += std::to_string(i >> 20) + " ";
  }
  text.resize(size);
  return text;
}

std::string text_in(const std::string& name, const std::string& bytes) {
  StringStream stream(bytes);
  std::string text;
  for_each_in_archive(name, stream,
                      [&](const std::string&, ByteStream& member) {
                        text += read_all(member, 1 << 24);
                      });
  return text;
}

std::string error_in(const std::string& name, const std::string& bytes) {
  return error_of([&] { text_in(name, bytes); });
}

// A frame of one raw block with a checksum, which libarchive does not write.
std::string zstd_bytes(const std::string& text) {
  const auto little = [](uint64_t value, int bytes) {
    std::string digits;
    for (int i = 0; i < bytes; ++i) digits += char(value >> (8 * i));
    return digits;
  };
  return "\x28\xb5\x2f\xfd" + std::string("\x64") +
         little(text.size() - 256, 2) + little(text.size() << 3 | 1, 3) + text +
         little(xxhash64(text.data(), text.size()), 4);
}

// One bit of every third byte between the two.
void expect_flips_are_noticed(const std::string& name, const std::string& bytes,
                              size_t begin, size_t end) {
  const auto text = text_in(name, bytes);
  for (size_t i = begin; i < end; i += 3) {
    auto flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 1 << i % 8);
    std::string read;
    const auto error = error_of([&] { read = text_in(name, flipped); });
    // Padding and times may be anything.
    EXPECT_TRUE(!error.empty() || read == text) << name << " " << i;
    if (!error.empty()) {
      EXPECT_EQ(error.rfind("cannot read " + name, 0), 0u) << error;
    }
  }
}

TEST(Archive, AFlippedBitNeverPassesForAnotherText) {
  const auto text = some_words(3001);
  for (const char* name : {"x.gz", "x.xz", "x.bz2"}) {
    const auto bytes = compressed_bytes(name, text);
    EXPECT_EQ(text_in(name, bytes), text);
    expect_flips_are_noticed(name, bytes, 0, bytes.size());
  }
  for (const char* name : {"x.tar.gz", "x.tar.xz", "x.tar.bz2"}) {
    const auto bytes = archive_bytes(name, {{"member", text}});
    EXPECT_EQ(text_in(name, bytes), text);
    expect_flips_are_noticed(name, bytes, 0, bytes.size());
  }
  expect_flips_are_noticed("x.zst", zstd_bytes(text), 0,
                           zstd_bytes(text).size());
  // Behind the names and sizes, of which a zip has no checksum.
  for (const char* name : {"x.zip", "x.npz"}) {
    const auto bytes = archive_bytes(name, {{"member", text}});
    const size_t data = bytes.find("member") + 30;
    expect_flips_are_noticed(name, bytes, data, bytes.find("PK\x01\x02") - 24);
  }
}

TEST(Archive, WrongChecksumsAreErrors) {
  const auto text = some_words(3001);
  for (const char* name : {"x.gz", "x.tar.gz"}) {
    const auto bytes = std::string(name) == "x.gz"
                           ? compressed_bytes(name, text)
                           : archive_bytes(name, {{"member", text}});
    for (const size_t from_end : {1, 4, 5, 8}) {  // the length, the CRC-32
      auto wrong = bytes;
      wrong[wrong.size() - from_end] ^= 1;
      const auto error = error_in(name, wrong);
      EXPECT_EQ(error, std::string("cannot read ") + name +
                           ": it is damaged (incorrect " +
                           (from_end > 4 ? "data" : "length") +
                           " check); get it again, or leave it out");
    }
  }
  auto zstd = zstd_bytes(text);
  zstd.back() ^= 1;
  EXPECT_NE(error_in("x.zst", zstd), "");
}

TEST(Archive, SeveralGzipFilesInARowAreOne) {
  const auto one = compressed_bytes("x.gz", "one ");
  const auto two = compressed_bytes("x.gz", some_words(200001));
  EXPECT_EQ(text_in("x.gz", one + two + one),
            "one " + some_words(200001) + "one ");
  EXPECT_EQ(text_in("x.gz", one + two + std::string(1000, '\0')),
            "one " + some_words(200001));
  EXPECT_EQ(text_in("x.gz", compressed_bytes("x.gz", "")), "");
}

// It could be the next one, damaged in its first byte.
TEST(Archive, OtherBytesBehindAGzipFileAreAnError) {
  const auto one = compressed_bytes("x.gz", "one ");
  std::string other = one;
  other[0] = '\x1e';
  for (const std::string& rest :
       {std::string("x"), std::string("\0\0x", 3), other,
        std::string("\0", 1) + one, one.substr(0, 1), one.substr(0, 15)}) {
    EXPECT_NE(error_in("x.gz", one + rest), "") << rest.size();
  }
}

TEST(Archive, CompressionIsUndoneOnce) {
  for (const char* name : {"x.gz", "x.xz", "x.bz2"}) {
    const auto inner = compressed_bytes(name, "text");
    EXPECT_EQ(text_in(name, compressed_bytes(name, inner)), inner) << name;
  }
}

TEST(Archive, ATarWithAnyNameForTarsIsOne) {
  const Members members = {{"a", "1"}, {"b", "2"}};
  for (const char* written : {"x.tar", "x.tar.gz", "x.tar.xz", "x.tar.zst"}) {
    EXPECT_EQ(text_in("y.tgz", archive_bytes(written, members)), "12");
  }
}

class HarmfulArchiveTest : public testing::Test {
 protected:
  std::string text_of(const std::string& name, const std::string& bytes) const {
    put_bytes(folder_ / name, bytes);
    DecodeObserver nobody;
    const auto text = open_text(folder_ / name, folder_ / "caches", nobody);
    std::string all(static_cast<size_t>(text->size()), '\0');
    text->read(0, {reinterpret_cast<uint8_t*>(all.data()), all.size()});
    return all;
  }

  const TemporaryFolder folder_;
};

// A zip may contain itself, and has no end then.
TEST_F(HarmfulArchiveTest, ArchivesInArchivesHaveADepth) {
  for (const char* name : {"x.zip", "x.tar", "x.tar.gz"}) {
    std::string bytes = archive_bytes(name, {{"text", "the text"}});
    for (int depth = 1; depth < 8; ++depth) {
      bytes = archive_bytes(name, {{name, bytes}});
    }
    EXPECT_EQ(text_of(name, bytes), "the text");
    bytes = archive_bytes(name, {{name, bytes}});
    const auto error = error_of([&] { text_of(name, bytes); });
    EXPECT_NE(error.find("archives within archives, more than 8 of them"),
              std::string::npos)
        << error;
  }
}

TEST_F(HarmfulArchiveTest, NamesThatLeadElsewhereAreOnlyNames) {
  const Members members = {{"../up", "1"}, {"/abs", "2"}, {"a/../../b", "3"}};
  for (const char* name : {"x.zip", "x.tar"}) {
    EXPECT_EQ(text_of(name, archive_bytes(name, members)), "123");
  }
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::recursive_directory_iterator(folder_.path())) {
    ++entries;
  }
  EXPECT_EQ(entries, 7u);  // two archives, a folder, two caches, two locks
}

TEST(Expansion, AThousandfoldBeyondAGibibyteIsAnError) {
  Expansion small("x.gz");
  small.add_input(1);
  small.add_output(size_t{1} << 30);
  EXPECT_NE(error_of([&] { small.add_output(1); }), "");

  Expansion large("x.gz");
  large.add_input(size_t{10} << 20);
  large.add_output(size_t{10000} << 20);
  EXPECT_EQ(error_of([&] { large.add_output(1000); }),
            "cannot read x.gz: 10485760 bytes of it became 10485761000, more "
            "than 1000 times as many; unpack it by hand if that is right");
  large.add_input(1);
  EXPECT_EQ(error_of([&] { large.add_output(0); }), "");
}

}  // namespace
}  // namespace reformer
