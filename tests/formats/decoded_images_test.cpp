#include "reformer/data/decoded_images.h"

#include <gtest/gtest.h>

#include "reformer/data/image.h"
#include "tests/data/npy_array.h"
#include "tests/formats/archive_writer.h"
#include "tests/formats/image_writer.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

Image of_colour(uint8_t colour, int64_t width = 5, int64_t height = 4) {
  return {width, height,
          std::vector<uint8_t>(size_t(width * height * 3), colour)};
}

struct Warnings : DecodeObserver {
  void warned(const std::string& sentence) override { said += sentence; }
  std::string said;
};

class DecodedImagesTest : public testing::Test {
 protected:
  std::shared_ptr<const CacheFile> opened(const std::string& path,
                                          int64_t size = 2) {
    return open_images(path, size, folder_ / "caches", warnings_);
  }
  std::shared_ptr<const CacheFile> archived(const Members& members,
                                            const char* name = "p.tar") {
    put_bytes(folder_ / name, archive_bytes(name, members));
    return opened(folder_ / name);
  }

  const TemporaryFolder folder_;
  Warnings warnings_;
};

// The first sub-pixel of each image of size 2.
std::vector<int> colours(const CacheFile& images) {
  std::vector<uint8_t> all(static_cast<size_t>(images.size()));
  images.read(0, all);
  std::vector<int> first;
  for (size_t i = 0; i < all.size(); i += 12) first.push_back(all[i]);
  return first;
}

const Members kImages = {
    {"readme.txt", "no image"},
    {"train/a.png", png_bytes(of_colour(10))},
    {"valid/b.JPEG", jpeg_bytes(of_colour(20, 64, 64))},
    {"train/c.jpg", jpeg_bytes(of_colour(30, 8, 16), /*grey=*/true)},
    {"test/d.PNG", png_bytes(of_colour(40, 1, 1))},
    // A PNG in spite of its name, as ImageNet has one.
    {"train/e.jpeg", png_bytes(of_colour(50))},
};

TEST_F(DecodedImagesTest, TakesPngAndJpegOfAnySizeInOrder) {
  for (const char* name : {"p.tar.gz", "p.zip"}) {
    const auto images = archived(kImages, name);
    EXPECT_EQ(colours(*images), (std::vector<int>{10, 20, 30, 40, 50}));
    EXPECT_EQ(images->labels(), "tvtet");
    EXPECT_EQ(images->skipped(), 0);
  }
  EXPECT_EQ(warnings_.said, "");
}

TEST_F(DecodedImagesTest, TakesAFolder) {
  for (const auto& [name, bytes] : kImages) {
    const std::filesystem::path path = folder_ / ("images/" + name);
    std::filesystem::create_directories(path.parent_path());
    put_bytes(path, bytes);
  }
  const auto images = opened(folder_ / "images");
  EXPECT_EQ(colours(*images), (std::vector<int>{40, 10, 30, 50, 20}));
  EXPECT_EQ(images->labels(), "etttv");
}

// ImageNet64 has planes of red, green and blue, beside labels and a mean.
TEST_F(DecodedImagesTest, TakesTheArraysOfNpzFiles) {
  std::string rows;
  for (const char first : {60, 70}) {
    for (char i = 0; i < 12; ++i) rows += static_cast<char>(first + i);
  }
  const auto npz = archive_bytes("x.npz", {{"data.npy", npy_array(2, 12, rows)},
                                           {"labels.npy", "not looked at"},
                                           {"mean.npy", "not looked at"}});
  // As it is offered: .npz files in a .zip.
  const auto images = archived({{"val_data.npz", npz}}, "offered.zip");
  EXPECT_EQ(images->labels(), "vv");
  std::vector<uint8_t> all(24);
  images->read(0, all);
  EXPECT_EQ(all, (std::vector<uint8_t>{60, 64, 68, 61, 65, 69, 62, 66,
                                       70, 63, 67, 71, 70, 74, 78, 71,
                                       75, 79, 72, 76, 80, 73, 77, 81}));
}

Members many(int count, const std::string& bad, int bad_count) {
  Members members;
  for (int i = 0; i < count; ++i) {
    members.emplace_back(
        std::to_string(1000 + i) + ".png",
        i < bad_count ? bad : png_bytes(of_colour(uint8_t(i))));
  }
  return members;
}

TEST_F(DecodedImagesTest, DamagedImagesAreCountedAndSkipped) {
  const auto whole = png_bytes(of_colour(1));
  for (const std::string& bad :
       {std::string(), std::string("\xff\xfe\x00", 3), whole.substr(0, 40)}) {
    warnings_.said.clear();
    const auto images = archived(many(300, bad, 3));
    EXPECT_EQ(images->skipped(), 3);
    EXPECT_EQ(images->labels().size(), 297u);
    EXPECT_EQ(colours(*images)[0], 3);
    EXPECT_NE(warnings_.said.find("3 of 300 images cannot be read and are left "
                                  "out; the first is 1000.png ("),
              std::string::npos)
        << warnings_.said;
  }
}

TEST_F(DecodedImagesTest, MoreThanOneInAHundredIsAnError) {
  const auto error = error_of([&] { archived(many(299, "x", 3)); });
  EXPECT_EQ(error, (folder_ / "p.tar") +
                       ": 3 of 299 images cannot be read, more than 1%; the "
                       "first is 1000.png (it is neither PNG nor JPEG)");
}

TEST_F(DecodedImagesTest, ADamagedMemberOfAZipIsADamagedImage) {
  auto zip = archive_bytes("z.npz", many(100, "", 0));  // stored, not deflated
  const size_t tenth = zip.find("1010.png");
  zip[tenth + 60] ^= 1;
  put_bytes(folder_ / "z.zip", zip);
  const auto images = opened(folder_ / "z.zip");
  EXPECT_EQ(images->skipped(), 1);
  EXPECT_NE(warnings_.said.find("1010.png"), std::string::npos);
}

std::string npz_of(const std::string& array) {
  return archive_bytes("x.npz", {{"data.npy", array}});
}

TEST_F(DecodedImagesTest, ArraysThatClaimMoreThanThereIsAreErrors) {
  const auto error_with = [&](const std::string& array) {
    put_bytes(folder_ / "x.npz", npz_of(array));
    return error_of([&] { opened(folder_ / "x.npz"); });
  };
  const std::string start = (folder_ / "x.npz") + ": cannot read data.npy: ";
  EXPECT_EQ(error_with(npy_array(1, 10'000'000'000, "x")),
            start +
                "rows of at most 402653184 bytes are required, got "
                "10000000000");
  EXPECT_EQ(error_with(npy_array(1, 9'223'372'036'854'775'807, "x")),
            start +
                "rows of at most 402653184 bytes are required, got "
                "9223372036854775807");
  EXPECT_EQ(error_with(npy_array(1, 3 * 11585 * 11585, "x")),
            start + "it ends in row 0 of 1");
  EXPECT_EQ(error_with(npy_array(1'000'000'000'000, 12, std::string(24, 'x'))),
            start + "it ends in row 2 of 1000000000000");
  EXPECT_EQ(error_with(npy_array(1, 12, std::string(13, 'x'))),
            start + "it goes on after its 1 rows");
}

// Its reader stops at the last row, before the checksum is compared.
TEST_F(DecodedImagesTest, AFlippedBitInAnArrayIsAnError) {
  auto npz = npz_of(npy_array(2, 12, "abcdefghijklmnopqrstuvwx"));
  npz[npz.find("mnop")] ^= 1;
  put_bytes(folder_ / "x.npz", npz);
  const auto error = error_of([&] { opened(folder_ / "x.npz"); });
  EXPECT_NE(error.find("data.npy is damaged"), std::string::npos) << error;
}

TEST_F(DecodedImagesTest, ATruncatedArchiveIsAnError) {
  const auto tar = archive_bytes("p.tar.gz", many(300, "", 0));
  put_bytes(folder_ / "p.tar.gz", tar.substr(0, tar.size() / 2));
  const auto error = error_of([&] { opened(folder_ / "p.tar.gz"); });
  EXPECT_NE(error.find("cannot read " + (folder_ / "p.tar.gz")),
            std::string::npos)
      << error;
}

TEST_F(DecodedImagesTest, SizesHaveCachesOfTheirOwn) {
  put_bytes(folder_ / "p.tar", archive_bytes("p.tar", kImages));
  EXPECT_EQ(opened(folder_ / "p.tar", 2)->size(), 5 * 12);
  EXPECT_EQ(opened(folder_ / "p.tar", 3)->size(), 5 * 27);
  EXPECT_EQ(opened(folder_ / "p.tar", 2)->size(), 5 * 12);
}

}  // namespace
}  // namespace reformer
