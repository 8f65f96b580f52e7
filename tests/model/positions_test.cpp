#include "reformer/model/positions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reformer/base/errors.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

Config config_with(const std::string& positions) {
  Config config = small_config();
  config.model.positions = positions;
  config.model.axial_shape = {3, 4, 5};
  config.model.axial_dims = {10, 6, 8};
  return config;
}

at::Tensor encoded(const std::string& kind, int64_t first, int64_t length) {
  ParameterStore store(0, at::kDouble);
  return Positions(config_with(kind), store).encode(first, length).detach();
}

TEST(Positions, SinusoidsAreThoseOfTheTransformer) {
  const auto table = sinusoids(3, 5, 7);
  for (int64_t p = 0; p < 5; ++p) {
    for (int64_t c = 0; c < 7; ++c) {
      const int64_t even = c - c % 2;
      const double angle =
          double(3 + p) / std::pow(10000.0, double(even) / 7.0);
      EXPECT_NEAR(table[p][c].item<double>(),
                  c % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-12);
    }
  }
}

TEST(Positions, SinusoidHasNoParametersAndNoEnd) {
  ParameterStore store(0, at::kFloat);
  const Positions positions(config_with("sinusoid"), store);
  EXPECT_TRUE(store.parameters().empty());
  EXPECT_TRUE(at::equal(positions.encode(100000, 3),
                        sinusoids(100000, 3, 24).to(at::kFloat)));
}

TEST(Positions, OfAnyOrderAreThoseOfARange) {
  for (const std::string kind : {"learned", "axial", "sinusoid"}) {
    ParameterStore store(0, at::kDouble);
    const Positions positions(config_with(kind), store);
    const auto some = at::tensor({41, 3, 59, 0, 3}, at::kLong);
    const auto expected =
        positions.encode(0, 60).detach().index_select(0, some);
    const auto found = positions.encode(some).detach();
    EXPECT_LE(relative_error(found, expected), 1e-13) << kind;
  }
}

TEST(Positions, LearnedStartsAsTheSinusoids) {
  EXPECT_TRUE(at::equal(encoded("learned", 7, 20), sinusoids(7, 20, 24)));
}

// The slowest wave takes the whole axis, or 10,000 positions.
TEST(Positions, AxialStartsAsWavesThatFitItsAxes) {
  auto config = config_with("axial");
  config.model.axial_shape = {3, 5, 20000};
  ParameterStore store(0, at::kDouble);
  const Positions positions(config, store);
  const double slowest[] = {3, 5, 10000};
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto table = store.parameters()[axis].value.detach();
    const int64_t width = config.model.axial_dims[axis];
    for (const int64_t p : {int64_t{1}, table.size(0) - 1}) {
      for (int64_t c = 0; c < width; ++c) {
        const int64_t even = c - c % 2;
        const double angle =
            double(p) / std::pow(slowest[axis], double(even) / double(width));
        EXPECT_NEAR(table[p][c].item<double>(),
                    c % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-10)
            << axis << ", " << p << ", " << c;
      }
    }
  }
}

// Position p of axes 3, 4, 5 has the coordinates of a number p written with
// these digits, the last running fastest.
TEST(Positions, AxialJoinsTheRowsOfEachAxis) {
  ParameterStore store(0, at::kDouble);
  const Positions positions(config_with("axial"), store);
  ASSERT_EQ(store.parameters().size(), 3u);
  uint64_t seed = 0;
  for (const auto& table : store.parameters()) {  // tell the tables apart
    table.value.detach().copy_(
        normal_numbers(table.value.sizes(), ++seed, at::kDouble));
  }
  const auto table = [&](int axis) {
    return store.parameters()[axis].value.detach();
  };
  const auto all = positions.encode(0, 60).detach();
  for (int64_t p = 0; p < 60; ++p) {
    const auto row = all[p];
    EXPECT_TRUE(at::equal(row.narrow(0, 0, 10), table(0)[p / 20])) << p;
    EXPECT_TRUE(at::equal(row.narrow(0, 10, 6), table(1)[p / 5 % 4])) << p;
    EXPECT_TRUE(at::equal(row.narrow(0, 16, 8), table(2)[p % 5])) << p;
  }
}

TEST(Positions, APartEqualsThePartOfTheWhole) {
  for (const char* kind : {"learned", "axial", "sinusoid"}) {
    EXPECT_TRUE(
        at::equal(encoded(kind, 13, 9), encoded(kind, 0, 60).narrow(0, 13, 9)))
        << kind;
  }
}

TEST(Positions, BeyondTheLastIsAnError) {
  ParameterStore store(0, at::kFloat);
  const Positions learned(config_with("learned"), store);
  EXPECT_NO_THROW(learned.encode(6, 60));
  EXPECT_THROW(learned.encode(7, 60), Error);
  const Positions axial(config_with("axial"), store);
  EXPECT_NO_THROW(axial.encode(0, 60));
  EXPECT_THROW(axial.encode(1, 60), Error);
}

TEST(Positions, ATextThatIsTooLongIsAnErrorOfTheModel) {
  auto config = config_with("learned");
  const LanguageModel model(config);
  config.train.length += 1;
  EXPECT_THROW(model.logits(random_tokens(config, 1), evaluation_pass()),
               Error);
}

}  // namespace
}  // namespace reformer
