#include "reformer/train/repeats.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reformer/base/errors.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

struct Sizes {
  int64_t length;
  int64_t distance;
};

const std::vector<Sizes> kSizes = {{130, 65},   {131, 65},  {1000, 65},
                                   {1000, 100}, {999, 143}, {1000, 333},
                                   {1000, 499}, {1000, 500}};

bool contains(const std::vector<int64_t>& values, int64_t begin, int64_t end,
              int64_t value) {
  return std::find(values.begin() + begin, values.begin() + end, value) !=
         values.begin() + end;
}

TEST(RepeatLayout, CountedTokensStoodOnceBeforeAndADistanceEarlier) {
  for (const auto& [length, distance] : kSizes) {
    const auto layout = repeat_layout(length, distance);
    ASSERT_EQ(layout.source.size(), size_t(length / 2 * 2));
    ASSERT_FALSE(layout.counted.empty()) << length << " " << distance;
    for (const int64_t at : layout.counted) {
      const int64_t first = at - distance;
      ASSERT_GE(first, 0);
      const int64_t token = layout.source[size_t(at)];
      EXPECT_EQ(layout.source[size_t(first)], token);
      EXPECT_FALSE(contains(layout.source, 0, first, token));
      EXPECT_FALSE(contains(layout.source, first + 1, at, token));
    }
  }
}

TEST(RepeatLayout, TheTextGoesOnButWhereARepeatBegins) {
  for (const auto& [length, distance] : kSizes) {
    const auto layout = repeat_layout(length, distance);
    const auto& source = layout.source;
    int64_t jumps = 0;
    for (size_t i = 1; i < source.size(); ++i) {
      if (source[i] == source[i - 1] + 1) continue;
      EXPECT_EQ(source[i], source[i - 1] + 1 - distance);
      EXPECT_EQ((int64_t(source.size()) - int64_t(i)) % (2 * distance),
                distance);
      ++jumps;
    }
    EXPECT_EQ(jumps, (length / 2 * 2 + distance - 1) / (2 * distance));
    EXPECT_EQ(source.back(), length / 2 * 2 - 1);
    EXPECT_GE(source.front(), 0);
  }
}

// What is counted is all of the repeats' second half but their leads.
TEST(RepeatLayout, CountsTheSecondHalfOfASequenceAfterEveryLead) {
  for (const auto& [length, distance] : kSizes) {
    const auto layout = repeat_layout(length, distance);
    const int64_t half = length / 2;
    const auto size = int64_t(layout.source.size());
    for (int64_t at = 0; at < size; ++at) {
      int64_t begin = size - distance;  // of the last repeat up to here
      while (begin > at) begin -= 2 * distance;
      const bool in_repeat = at - begin < distance;
      const bool expected =
          at >= half && in_repeat && at - begin >= kRepeatLead;
      EXPECT_EQ(contains(layout.counted, 0, int64_t(layout.counted.size()), at),
                expected)
          << length << " " << distance << " " << at;
    }
  }
  EXPECT_EQ(repeat_layout(1000, 500).counted.size(), 500u - 64u);
}

std::string refusal_of(int64_t length, int64_t distance) {
  try {
    repeat_layout(length, distance);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(RepeatLayout, DistancesBeyondHalfOrWithinTheLeadAreErrors) {
  EXPECT_EQ(refusal_of(1000, 501),
            "recall: distances from 65 to 500, half of a sequence of 1000, are "
            "required, got 501");
  EXPECT_NE(refusal_of(1000, 64), "no error");
  EXPECT_NE(refusal_of(128, 65), "no error");
  EXPECT_EQ(refusal_of(130, 65), "no error");
}

// Batches that are given.
class GivenTask : public Task {
 public:
  explicit GivenTask(std::vector<Batch> batches)
      : batches_(std::move(batches)) {}

  Batch training_batch(int64_t) const override { return {}; }
  int64_t evaluation_batches(Split) const override {
    return int64_t(batches_.size());
  }
  Batch evaluation_batch(Split split, int64_t index) const override {
    EXPECT_EQ(split, Split::kTest);
    return batches_.at(size_t(index));
  }
  std::string metric_name() const override { return "loss"; }
  double metric_of(double loss) const override { return loss; }

 private:
  std::vector<Batch> batches_;
};

Config config_of_length(int64_t length) {
  auto config = small_config_of("lsh,local");
  config.train.length = length;
  return config;
}

std::vector<Batch> some_batches(const Config& config, int64_t count) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < count; ++i) {
    const auto tokens = random_tokens(config, uint64_t(i));
    batches.push_back({tokens, all_of(tokens)});
  }
  return batches;
}

// Token by token, of one row: the mean losses in the repeats, where they
// come first, and in the text as it is.
RepeatLosses plain_losses(const LanguageModel& model, const at::Tensor& row,
                          int64_t distance, int64_t rounds) {
  const int64_t half = row.size(0) / 2;
  const int64_t size = 2 * half;
  auto twice = row.narrow(0, 0, size).clone();
  // From the end: the text's last piece twice, then the one before it.
  for (int64_t i = size, text = size; i > 0; --text) {
    if ((size - text) % distance == 0 && text != size) i -= distance;
    if (i <= 0) break;
    --i;
    twice[i] = row[text - 1];
    if (i >= distance) twice[i - distance] = row[text - 1];
  }
  const Pass pass{uint64_t(model.config().train.seed), 0, false, rounds};
  const auto losses = model.losses(twice.unsqueeze(0), pass)[0];
  const auto plain = model.losses(row.narrow(0, 0, size).unsqueeze(0), pass)[0];
  RepeatLosses sums{.distance = distance};
  int64_t text = size;
  for (int64_t end = size; end > half; end -= 2 * distance, text -= distance) {
    for (int64_t i = distance - 1; i >= kRepeatLead; --i) {
      const int64_t at = end - distance + i;
      if (at < half) break;
      sums.repeat += losses[at].item<double>();
      sums.first += losses[at - distance].item<double>();
      sums.no_copy += plain[text - distance + i].item<double>();
      ++sums.count;
    }
  }
  return sums;
}

TEST(LossesOnRepeats, AreThoseOfTextsWrittenTokenByToken) {
  auto config = config_of_length(404);
  LanguageModel model(config);
  shake(model, 0.2);
  config.train.length = 403;  // of a text, which may be odd
  const auto batches = some_batches(config, 2);
  const GivenTask task(batches);
  const auto found =
      losses_on_repeats(model, task, {Split::kTest, 0, 2}, {70, 201, 97});
  ASSERT_EQ(found.size(), 3u);
  for (const auto& means : found) {
    RepeatLosses sums;
    for (const auto& batch : batches) {
      for (int64_t row = 0; row < batch.tokens.size(0); ++row) {
        const auto one =
            plain_losses(model, batch.tokens[row], means.distance, 2);
        sums.repeat += one.repeat;
        sums.first += one.first;
        sums.no_copy += one.no_copy;
        sums.count += one.count;
      }
    }
    ASSERT_EQ(means.count, sums.count);
    const double count = double(sums.count);
    EXPECT_NEAR(means.repeat, sums.repeat / count, 1e-4);
    EXPECT_NEAR(means.first, sums.first / count, 1e-4);
    EXPECT_NEAR(means.no_copy, sums.no_copy / count, 1e-4);
    EXPECT_GT(std::abs(means.repeat - means.first), 1e-3);  // they can differ
    EXPECT_GT(std::abs(means.first - means.no_copy), 1e-3);
  }
  EXPECT_EQ(found[1].distance, 201);
}

TEST(LossesOnRepeats, FewerBatchesAreTakenFromAllOverTheSplit) {
  const auto config = config_of_length(130);
  const LanguageModel model(config);
  const auto batches = some_batches(config, 7);
  const auto losses = [&](const std::vector<Batch>& some, int64_t count) {
    return losses_on_repeats(model, GivenTask(some), {Split::kTest, count, 1},
                             {65})[0]
        .repeat;
  };
  EXPECT_EQ(losses(batches, 3),
            losses({batches[0], batches[2], batches[4]}, 0));
  EXPECT_EQ(losses(batches, 9), losses(batches, 0));
}

TEST(LossesOnRepeats, SequencesThatArePaddedDoNotCount) {
  const auto config = config_of_length(130);
  const LanguageModel model(config);
  auto batches = some_batches(config, 2);
  const auto losses = [&] {
    return losses_on_repeats(model, GivenTask(batches), {Split::kTest, 0, 1},
                             {65})[0];
  };
  EXPECT_EQ(losses().count, 4);  // 65 - 64 of each row
  batches[1].loss_mask[1][129] = false;
  EXPECT_EQ(losses().count, 3);
  batches[1].loss_mask[0][129] = false;
  EXPECT_EQ(losses().count, 2);
  batches[0].loss_mask.fill_(false);
  try {
    losses();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "recall: a whole sequence of 130 bytes is required, the split "
                 "is shorter");
  }
}

TEST(LossesOnRepeats, ADivergedModelIsAnError) {
  const auto config = config_of_length(130);
  LanguageModel model(config);
  const GivenTask task(some_batches(config, 1));
  {
    const at::NoGradGuard no_grad;
    model.parameters().front().value.fill_(
        std::numeric_limits<double>::quiet_NaN());
  }
  EXPECT_THROW(losses_on_repeats(model, task, {Split::kTest, 0, 1}, {65}),
               Error);
}

}  // namespace
}  // namespace reformer
