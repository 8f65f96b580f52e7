#include "reformer/data/decoded_text.h"

#include <gtest/gtest.h>

#include "reformer/tasks/task.h"
#include "tests/formats/archive_writer.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

// Bytes of every kind, that do not compress well, longer than any buffer.
std::string some_text(size_t size) {
  std::string text(size, '\0');
  uint32_t state = 1;
  for (auto& c : text) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 24);
  }
  return text;
}

class DecodedTextTest : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes) const {
    put_bytes(folder_ / name, bytes);
    return folder_ / name;
  }

  std::string text_of(const std::string& path) const {
    DecodeObserver nobody;
    const auto bytes = open_text(path, folder_ / "caches", nobody);
    std::string text(static_cast<size_t>(bytes->size()), '\0');
    bytes->read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
    return text;
  }

  std::string error_with(const std::string& name,
                         const std::string& bytes) const {
    return error_of([&] { text_of(put(name, bytes)); });
  }

  const TemporaryFolder folder_;
};

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "'" << part << "' is not in: " << text;
}

const Members kMembers = {{"b/", ""},
                          {"b/2.txt", "second "},
                          {"b/empty", ""},
                          {"b/latin1", "caf\xe9 "},
                          {".hidden", "never "},
                          {"x/._y/z", "never "},
                          {"a", some_text(300001)}};
const std::string kJoined = "second caf\xe9 " + some_text(300001);

TEST_F(DecodedTextTest, EveryKindOfArchiveHoldsTheSame) {
  for (const char* name :
       {"t.tar", "t.tar.gz", "t.tar.xz", "t.tar.zst", "t.tar.bz2", "t.zip"}) {
    EXPECT_TRUE(text_of(put(name, archive_bytes(name, kMembers))) == kJoined)
        << name;
  }
}

TEST_F(DecodedTextTest, EveryKindOfCompressionHoldsTheSame) {
  const auto text = some_text(300001);
  for (const char* name : {"t.gz", "t.txt.xz", "t.zst", "t.bz2"}) {
    EXPECT_TRUE(text_of(put(name, compressed_bytes(name, text))) == text)
        << name;
  }
}

TEST_F(DecodedTextTest, AFolderIsItsFilesInOrderOfTheirNames) {
  std::filesystem::create_directories(folder_ / "texts/b");
  put("texts/c", "3 ");
  put("texts/a.txt.gz", compressed_bytes("x.gz", "1 "));
  put("texts/b/z.tar", archive_bytes("z.tar", {{"y", "2y "}, {"x", "2x "}}));
  put("texts/b/empty", "");
  put("texts/.b", "never");
  EXPECT_EQ(text_of(folder_ / "texts"), "1 2y 2x 3 ");
}

TEST_F(DecodedTextTest, ArchivesInArchivesAreOpened) {
  const auto inner = archive_bytes("i.zip", {{"x", "1"}, {"y", "2"}});
  const auto outer = archive_bytes(
      "o.tar.gz",
      {{"i.zip", inner}, {"z.gz", compressed_bytes("z.gz", "3")}, {"t", "4"}});
  EXPECT_EQ(text_of(put("o.tar.gz", outer)), "1234");
}

TEST_F(DecodedTextTest, NamesNeedNotBeUtf8) {
  const Members members = {{"caf\xe9", "1"}, {"\xff\xfe", "2"}};
  for (const char* name : {"n.tar", "n.zip"}) {
    EXPECT_EQ(text_of(put(name, archive_bytes(name, members))), "12") << name;
  }
}

TEST_F(DecodedTextTest, WhatIsCutShortIsAnError) {
  const auto text = some_text(300001);
  for (const char* name : {"c.gz", "c.xz", "c.zst", "c.bz2", "c.tar", "c.zip",
                           "c.tar.gz", "c.tar.xz"}) {
    const bool many = std::string(name).find("tar") != std::string::npos ||
                      std::string(name).ends_with("zip");
    const auto whole = many ? archive_bytes(name, {{"member", text}})
                            : compressed_bytes(name, text);
    for (const size_t size : {whole.size() / 2, size_t{200000}}) {
      const auto error = error_with(name, whole.substr(0, size));
      expect_contains(error, std::string("cannot read ") + (folder_ / name));
      expect_contains(error, "get it again");
    }
  }
}

// What compresses a tar knows of no members.
TEST_F(DecodedTextTest, WhatIsDamagedIsAnErrorThatNamesTheMember) {
  const auto text = some_text(300001);
  for (const auto& [name, fault] :
       {std::pair("d.tar.xz", "d.tar.xz: it is damaged ("),
        {"d.tar.gz", "d.tar.gz: it is damaged ("},
        {"d.zip", "d.zip: its member member is damaged ("}}) {
    auto bytes = archive_bytes(name, {{"first", "x"}, {"member", text}});
    bytes[bytes.size() / 2] ^= 1;
    expect_contains(error_with(name, bytes), fault);
  }
}

TEST_F(DecodedTextTest, WhatIsNoArchiveIsAnError) {
  for (const char* name : {"n.tar", "n.tar.gz", "n.zip"}) {
    const auto error = error_with(name, "this is no archive at all");
    expect_contains(error, "cannot read " + (folder_ / name));
  }
  expect_contains(error_with("n.gz", "this is not compressed"),
                  "it is not compressed, whatever its name says; rename it");
  for (const char* name : {"e.gz", "e.tar", "e.zip"}) {
    EXPECT_EQ(error_with(name, ""), (folder_ / name) + " is empty");
  }
}

TEST_F(DecodedTextTest, AnArchiveWithoutAByteIsAnError) {
  const Members nothing = {{"a/", ""}, {"a/empty", ""}};
  for (const char* name : {"v.tar", "v.zip"}) {
    expect_contains(error_with(name, archive_bytes(name, nothing)),
                    (folder_ / name) + " holds no data");
  }
}

// Each level is a few kilobytes, thirty times the one within.
TEST_F(DecodedTextTest, ArchivesOfNothingHaveAnEnd) {
  std::string bytes = archive_bytes("x.zip", {});
  std::string name = "x.zip";
  for (int level = 0; level < 5; ++level) {
    Members members;
    for (int i = 0; i < 30; ++i) {
      members.emplace_back(std::to_string(i) + name, bytes);
    }
    name = ".tar.gz";
    bytes = archive_bytes(name, members);
  }
  EXPECT_LT(bytes.size(), 50000u);
  expect_contains(error_with("n.tar.gz", bytes),
                  "more than 1000 times as many");
}

// As the plain file, which it was packed from.
TEST_F(DecodedTextTest, ATaskOfAnArchiveIsThatOfItsText) {
  const auto text = some_text(5001);
  Config config;
  config.task.cache = folder_ / "caches";
  config.train.length = 33;
  config.train.batch = 3;
  config.task.data = put("plain", text);
  const auto plain = make_task(config);
  config.task.data = put("t.xz", compressed_bytes("t.xz", text));
  const auto packed = make_task(config);
  int64_t counted = 0;
  for (const Split split : {Split::kValidation, Split::kTest}) {
    ASSERT_EQ(packed->evaluation_batches(split),
              plain->evaluation_batches(split));
    for (int64_t i = 0; i < plain->evaluation_batches(split); ++i) {
      const auto batch = packed->evaluation_batch(split, i);
      EXPECT_TRUE(
          same_bits(batch.tokens, plain->evaluation_batch(split, i).tokens));
      counted += batch.loss_mask.sum().item<int64_t>();
    }
  }
  EXPECT_EQ(counted, 5001 - 5001 * 90 / 100);
  EXPECT_TRUE(same_bits(packed->training_batch(5).tokens,
                        plain->training_batch(5).tokens));
}

}  // namespace
}  // namespace reformer
