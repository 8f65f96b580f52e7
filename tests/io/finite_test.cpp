#include "reformer/io/finite.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <limits>

namespace reformer {
namespace {

TEST(Finite, OneNumberThatIsNoneIsFoundWhereverItLies) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const double wrong : {std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity()}) {
      for (const int64_t at : {0, 1, 500, 998, 999}) {
        auto value = at::arange(1000, at::TensorOptions().dtype(type));
        const std::vector<NamedTensor> tensors = {
            {"a", at::arange(7, at::kFloat)}, {"b", value}};
        EXPECT_EQ(first_not_finite(tensors), "");
        value[at].fill_(wrong);
        EXPECT_EQ(first_not_finite(tensors), "b") << type << wrong << at;
      }
    }
  }
}

TEST(Finite, TheFirstIsNamed) {
  const auto nan =
      at::full({2, 3}, std::numeric_limits<float>::quiet_NaN(), at::kFloat);
  EXPECT_EQ(first_not_finite({{"b", nan}, {"a", nan}}), "b");
}

TEST(Finite, LargeNumbersWholeNumbersAndNoneAreFinite) {
  EXPECT_EQ(first_not_finite(
                {{"large", at::full({3, 5}, std::numeric_limits<float>::max(),
                                    at::kFloat)
                               .t()},
                 {"small", at::full({3}, -1e-45, at::kFloat)},
                 {"t", at::full({}, 7, at::kLong)},
                 {"one", at::full({}, -1.0, at::kDouble)},
                 {"empty", at::empty({0, 4})}}),
            "");
  EXPECT_EQ(first_not_finite({}), "");
}

}  // namespace
}  // namespace reformer
