#include "reformer/data/npy.h"

#include <gtest/gtest.h>

#include "tests/data/npy_array.h"
#include "tests/data/string_stream.h"
#include "tests/io/file_support.h"

namespace reformer {
namespace {

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

TEST(Npy, AShapeThatIsCutOffIsAnError) {
  for (const char* shape :
       {"(3", "(3,", "(3, 2", "(,2)", "(3, 9999999999999999999999)", "(-3, 2)",
        "(0, 2)"}) {
    std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': ";
    header += shape;
    const std::string bytes = std::string("\x93NUMPY\x01\x00", 8) +
                              char(header.size()) + '\0' + header;
    EXPECT_NE(error_with(bytes).find("two dimensions"), std::string::npos)
        << shape;
  }
}

TEST(ReadClaimed, AsksForNoMoreThanTwiceWhatThereIs) {
  StringStream stream(std::string(200000, 'x'));
  EXPECT_EQ(read_claimed(stream, size_t{1} << 60).size(), 200000u);
  EXPECT_LE(stream.most_asked(), 2 * 200000u);
  StringStream longer(std::string(200000, 'x'));
  EXPECT_EQ(read_claimed(longer, 100001).size(), 100001u);
  EXPECT_EQ(read_claimed(longer, 100000).size(), 99999u);
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
