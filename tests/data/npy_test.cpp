#include "reformer/data/npy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/data/npy_array.h"
#include "tests/train/file_support.h"

namespace reformer {
namespace {

class StringStream : public ByteStream {
 public:
  explicit StringStream(std::string bytes) : bytes_(std::move(bytes)) {}
  // At most 7 bytes at a time: a stream need not give all that it is asked for.
  size_t read(std::span<uint8_t> out) override {
    const size_t n = std::min({out.size(), bytes_.size() - at_, size_t{7}});
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(at_), n, out.begin());
    at_ += n;
    return n;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

std::string error_with(const std::string& bytes) {
  return error_of([&] {
    StringStream stream(bytes);
    read_npy_header(stream);
  });
}

TEST(Npy, TheRowsFollowTheHeader) {
  StringStream stream(npy_array(3, 2, "aabbcc"));
  const auto header = read_npy_header(stream);
  EXPECT_EQ(header.rows, 3);
  EXPECT_EQ(header.columns, 2);
  EXPECT_EQ(read_all(stream, 100), "aabbcc");
}

TEST(Npy, TheSecondVersionHasALongerLength) {
  std::string bytes = npy_array(3, 2, "aabbcc");
  bytes.replace(6, 4, std::string("\x02\x00\x76\x00\x00\x00", 6));
  StringStream stream(bytes);
  EXPECT_EQ(read_npy_header(stream).rows, 3);
  EXPECT_EQ(read_all(stream, 100), "aabbcc");
}

TEST(Npy, OtherArraysAreErrors) {
  const auto array = npy_array(3, 2, "aabbcc");
  EXPECT_EQ(error_with("no array at all"), "it is no .npy array");
  for (const size_t size : {0, 3, 9, 50}) {
    EXPECT_EQ(error_with(array.substr(0, size)),
              "it is no .npy array: it ends in its header");
  }
  EXPECT_NE(error_with(npy_array(3, 2, "", "<f4")).find("uint8"),
            std::string::npos);
  std::string fortran = array;
  fortran.replace(fortran.find("False"), 5, "True ");
  EXPECT_NE(error_with(fortran).find("C order"), std::string::npos);
  std::string cube = array;
  cube.replace(cube.find("(3, 2), }"), 9, "(3, 1, 2)");
  EXPECT_NE(error_with(cube).find("two dimensions"), std::string::npos);
}

TEST(ReadAll, StopsAtItsLimit) {
  StringStream short_one(std::string(1000, 'x'));
  EXPECT_EQ(read_all(short_one, 1000).size(), 1000u);
  StringStream long_one(std::string(200001, 'x'));
  EXPECT_EQ(error_of([&] { read_all(long_one, 200000); }),
            "more than 200000 bytes");
}

}  // namespace
}  // namespace reformer
