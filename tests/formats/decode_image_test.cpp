#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "reformer/data/image.h"
#include "reformer/data/png.h"
#include "tests/formats/image_writer.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

// Smooth, so that a JPEG of it is near.
Image gradient(int64_t width, int64_t height) {
  Image image{width, height, {}};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (const int64_t value : {x * 255 / width, y * 255 / height,
                                  (x + y) * 255 / (width + height)}) {
        image.rgb.push_back(static_cast<uint8_t>(value));
      }
    }
  }
  return image;
}

Image decoded(const std::string& bytes) {
  return decode_image(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

std::string error_with(const std::string& bytes) {
  return error_of([&] { decoded(bytes); });
}

TEST(DecodeImage, APngIsItselfToTheBit) {
  const auto image = gradient(33, 7);
  const auto read = decoded(png_bytes(image));
  EXPECT_EQ(read.width, 33);
  EXPECT_EQ(read.height, 7);
  EXPECT_EQ(read.rgb, image.rgb);
}

TEST(DecodeImage, AJpegIsNearItself) {
  const auto image = gradient(40, 25);
  const auto read = decoded(jpeg_bytes(image));
  ASSERT_EQ(read.width, 40);
  ASSERT_EQ(read.height, 25);
  ASSERT_EQ(read.rgb.size(), image.rgb.size());
  for (size_t i = 0; i < image.rgb.size(); ++i) {
    EXPECT_NEAR(read.rgb[i], image.rgb[i], 12) << i;
  }
}

TEST(DecodeImage, GreyBecomesThreeEqualColours) {
  const auto read = decoded(jpeg_bytes(gradient(20, 11), /*grey=*/true));
  ASSERT_EQ(read.rgb.size(), 20u * 11 * 3);
  for (size_t i = 0; i < read.rgb.size(); i += 3) {
    EXPECT_EQ(read.rgb[i], read.rgb[i + 1]);
    EXPECT_EQ(read.rgb[i], read.rgb[i + 2]);
    EXPECT_NEAR(read.rgb[i], double(i / 3 % 20) * 255 / 20, 4);
  }
  const auto png = decoded(transparent_png_bytes(1, 1, "\x50\xff"));
  EXPECT_EQ(png.rgb, (std::vector<uint8_t>{0x50, 0x50, 0x50}));
}

TEST(DecodeImage, TransparentPartsAreBlack) {
  const auto read = decoded(transparent_png_bytes(
      2, 1, std::string("\x10\x20\x30\xff\x10\x20\x30\x00", 8)));
  EXPECT_EQ(read.rgb, (std::vector<uint8_t>{0x10, 0x20, 0x30, 0, 0, 0}));
}

TEST(DecodeImage, WhatIsCutShortIsAnError) {
  const auto image = gradient(64, 64);
  for (const auto& whole : {png_bytes(image), jpeg_bytes(image)}) {
    for (const size_t size :
         {whole.size() * 9 / 10, whole.size() / 2, size_t{30}, size_t{4}}) {
      EXPECT_NE(error_with(whole.substr(0, size)), "") << size;
    }
    EXPECT_EQ(error_with(whole), "");
  }
}

TEST(DecodeImage, WhatIsDamagedIsAnError) {
  auto png = png_bytes(gradient(64, 64));
  png[png.size() / 2] ^= 1;
  EXPECT_NE(error_with(png).find("PNG: "), std::string::npos);
  auto jpeg = jpeg_bytes(gradient(64, 64));
  jpeg.replace(20, 40, std::string(40, '\xff'));
  EXPECT_NE(error_with(jpeg).find("JPEG: "), std::string::npos);
}

TEST(DecodeImage, OtherBytesAreErrors) {
  EXPECT_EQ(error_with(""), "it is empty");
  EXPECT_EQ(error_with("GIF89a"), "it is neither PNG nor JPEG");
}

// A header may promise what no memory holds.
TEST(DecodeImage, HugeImagesAreErrors) {
  auto jpeg = jpeg_bytes(gradient(8, 8));
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\x7f\xff\x7f\xff");
  EXPECT_NE(error_with(jpeg).find("too many"), std::string::npos);
}

// A few bytes for each pixel row of zeros would do, but none for all of them.
TEST(DecodeImage, ImagesThatAFileCannotHoldAreErrors) {
  auto jpeg = jpeg_bytes(gradient(8, 8));
  jpeg.replace(jpeg.find("\xff\xc0") + 5, 4, "\x2d\x01\x2d\x01");
  EXPECT_NE(error_with(jpeg).find("11521 x 11521 pixels cannot be in "),
            std::string::npos);
  EXPECT_NE(error_of([] { require_possible_size("PNG", 11585, 11585, 9999); }),
            "");
  EXPECT_EQ(error_of([] { require_possible_size("PNG", 11585, 11585, 17000); }),
            "");
  EXPECT_EQ(error_of([] {
              require_possible_size("PNG", int64_t{1} << 31, 1 << 30, 9);
            }),
            "PNG: 2147483648 x 1073741824 pixels are too many");
}

// Found by tests/fuzz/png.cpp: libpng took 1.5 GB for the 56 bytes of a file.
TEST(DecodeImage, PartsThatAreNotThereAreErrorsBeforeMemoryIsTaken) {
  auto png = png_bytes(gradient(8, 8));
  png.insert(33, std::string("\x5b\x00\x00\x01zTXt", 8));
  EXPECT_EQ(error_with(png),
            "PNG: a part of it claims 1526726657 bytes, of "
            "which there are " +
                std::to_string(png.size() - 45));
  EXPECT_EQ(error_with(png.substr(0, 41)),
            "PNG: a part of it claims 1526726657 bytes, of "
            "which there are 0");
}

TEST(DecodeImage, BytesBehindTheEndOfAPngMayBeAnything) {
  const auto image = gradient(8, 8);
  EXPECT_EQ(decoded(png_bytes(image) + std::string(40, '\xff')).rgb, image.rgb);
}

TEST(DecodeImage, ThousandsOfScansAreAnError) {
  const auto image = gradient(40, 25);
  const auto once = decoded(progressive_jpeg_bytes(image, 0));
  EXPECT_EQ(decoded(progressive_jpeg_bytes(image, 50)).rgb, once.rgb);
  EXPECT_EQ(error_with(progressive_jpeg_bytes(image, 2000)),
            "JPEG: more than 100 scans");
}

TEST(WritePng, IsReadBack) {
  const TemporaryFolder folder;
  const auto image = gradient(31, 17);
  write_png(folder / "x.png", image);
  EXPECT_EQ(decoded(bytes_of(folder / "x.png")).rgb, image.rgb);
  EXPECT_NE(error_of([&] { write_png(folder / "none/x.png", image); }), "");
}

}  // namespace
}  // namespace reformer
