#include "reformer/base/xxhash64.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace reformer {
namespace {

// Printed by the xxhash package of PyPI, for bytes 7 i + 3.
TEST(Xxhash64, IsWhatOtherProgramsCompute) {
  const std::pair<size_t, const char*> cases[] = {
      {0, "ef46db3751d8e999"},   {1, "1f25c8d0bc1f4bb6"},
      {3, "31d2363f52e564c9"},   {4, "9bb64b7d66ee9fda"},
      {7, "9a7b149959ce60d8"},   {8, "dab99d95c6f90092"},
      {31, "a2aa5f33cc4a6119"},  {32, "23c3c17ef790fd97"},
      {33, "50a7cfc7ba588784"},  {63, "5e3e54b431c7493c"},
      {64, "0eb64b3ef6eeb01f"},  {100, "a61f8d4c170fe531"},
      {1000, "5f235fa033f1a3fb"}};
  for (const auto& [size, hash] : cases) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(7 * i + 3);
    EXPECT_EQ(xxhash64_hex(bytes), hash) << size;
  }
}

}  // namespace
}  // namespace reformer
