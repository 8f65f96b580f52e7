// The public language model: what a user's program relies on.
#include "reformer/model.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>

#include "reformer/error.h"
#include "tests/public/small_model.h"

namespace {

using public_tests::counting;
using public_tests::small_options;
using reformer::Model;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const reformer::Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_error(const std::string& part,
                  const std::function<void()>& action) {
  const std::string error = error_of(action);
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(Model, LearnsTokensOfTheCallers) {
  Model model(small_options(), "cpu");
  EXPECT_EQ(model.vocabulary(), 16);
  EXPECT_EQ(model.length(), 48);
  EXPECT_GT(model.parameters(), 1000);
  const auto unseen = counting(5, 3, 48);
  const double before = model.evaluate(unseen);
  for (int step = 0; step < 40; ++step) {
    model.train_step(counting(step, 4, 48));
  }
  EXPECT_EQ(model.steps(), 40);
  EXPECT_LT(model.evaluate(unseen), 0.5 * before);
}

TEST(Model, HasTheSameParametersFromTheSameSeed) {
  auto options = small_options();
  const auto logits = Model(options, "cpu").logits(counting(0, 1, 9));
  EXPECT_TRUE(
      at::equal(Model(options, "cpu").logits(counting(0, 1, 9)), logits));
  options.seed = 8;
  EXPECT_FALSE(
      at::equal(Model(options, "cpu").logits(counting(0, 1, 9)), logits));
}

TEST(Model, SettingsHaveTheLastWord) {
  auto options = small_options();
  options.settings.push_back("model.d_model=24");
  const std::string settings = Model(options, "cpu").settings();
  EXPECT_NE(settings.find("\"d_model\": 24"), std::string::npos) << settings;
  EXPECT_NE(settings.find("\"d_ff\": 64"), std::string::npos) << settings;
}

TEST(Model, TheLossIsThatOfTheTokensThatCount) {
  const Model model(small_options(), "cpu");
  const auto tokens = counting(0, 2, 20);
  auto mask = at::zeros({2, 20}, at::kBool);
  mask[1][7] = true;
  mask[0][0] = true;
  const auto surprise = -at::log_softmax(model.logits(tokens), 2)
                             .gather(2, tokens.unsqueeze(2))
                             .squeeze(2);  // [2, 20]
  EXPECT_NEAR(model.evaluate(tokens), surprise.mean().item<double>(), 1e-5);
  EXPECT_NEAR(model.evaluate(tokens, mask),
              surprise.masked_select(mask).mean().item<double>(), 1e-5);
}

TEST(Model, ThePredictionOfATokenDoesNotSeeIt) {
  const Model model(small_options(), "cpu");
  const auto tokens = counting(0, 1, 20);
  auto other = tokens.clone();
  other[0][11] = 2;
  const auto a = model.logits(tokens);
  const auto b = model.logits(other);
  EXPECT_TRUE(at::equal(a.narrow(1, 0, 12), b.narrow(1, 0, 12)));
  EXPECT_FALSE(at::equal(a.narrow(1, 12, 8), b.narrow(1, 12, 8)));
}

TEST(Model, GeneratesWhatItsLogitsSay) {
  Model model(small_options(), "cpu");
  for (int step = 0; step < 20; ++step) {
    model.train_step(counting(step, 4, 48));
  }
  const auto prompt = counting(4, 2, 5);
  const auto made = model.generate(prompt, 10, {.temperature = 0});
  ASSERT_EQ(made.sizes(), at::IntArrayRef({2, 15}));
  EXPECT_TRUE(at::equal(made.narrow(1, 0, 5), prompt));
  const auto likeliest = model.logits(made).argmax(2);
  EXPECT_TRUE(at::equal(made.narrow(1, 5, 10), likeliest.narrow(1, 5, 10)));
}

TEST(Model, GeneratesFromNothingAndBySeed) {
  const Model model(small_options(), "cpu");
  const auto nothing = at::empty({1, 0}, at::kLong);
  const auto made = model.generate(nothing, 48, {.seed = 1});
  EXPECT_EQ(made.size(1), 48);
  EXPECT_TRUE(at::equal(model.generate(nothing, 48, {.seed = 1}), made));
  EXPECT_FALSE(at::equal(model.generate(nothing, 48, {.seed = 2}), made));
}

TEST(Model, SaysWhatIsWrongWithTokens) {
  Model model(small_options(), "cpu");
  const auto tokens = counting(0, 1, 8);
  for (const auto& wrong :
       {at::Tensor(), tokens.to(at::kInt), tokens[0], tokens.narrow(0, 0, 0),
        tokens + 3, tokens - 1, counting(0, 1, 49)}) {
    for (const std::function<void()>& use : std::vector<std::function<void()>>{
             [&] { model.train_step(wrong); }, [&] { model.evaluate(wrong); },
             [&] { model.logits(wrong); }, [&] { model.generate(wrong, 1); }}) {
      EXPECT_NE(error_of(use), "no error");
    }
  }
  expect_error("evaluate: tokens must be from 0 to 15, got 16",
               [&] { model.evaluate(tokens * 0 + 16); });
  expect_error("evaluate: tokens must be [batch, length] int64, got Int [1, 8]",
               [&] { model.evaluate(tokens.to(at::kInt)); });
  expect_error("at most 48 positions",
               [&] { model.logits(counting(0, 1, 49)); });
  expect_error("loss_mask must be bool [1, 8], got Long [1, 8]",
               [&] { model.evaluate(tokens, tokens); });
  expect_error("a count from 1 to 40 is required after a prompt of 8 tokens",
               [&] { model.generate(tokens, 41); });
  expect_error("a count from 1", [&] { model.generate(tokens, 0); });
  expect_error("temperature",
               [&] { model.generate(tokens, 1, {.temperature = -1}); });
}

TEST(Model, SaysWhatIsWrongWithOptions) {
  const auto made_with = [](auto change) {
    auto options = small_options();
    change(options);
    return error_of([&] { Model(options, "cpu"); });
  };
  EXPECT_EQ(made_with([](auto& o) { o.vocabulary = 2; }), "no error");
  EXPECT_EQ(made_with([](auto& o) {
              o.vocabulary = 1;
            }).rfind("model.vocabulary: a whole number from 2", 0),
            0u);
  EXPECT_NE(made_with([](auto& o) { o.heads = 3; }), "no error");
  EXPECT_NE(made_with([](auto& o) { o.attention = "no such"; }), "no error");
  EXPECT_NE(made_with([](auto& o) {
              o.settings = {"lsh.round=1"};
            }).find("the nearest is lsh.rounds"),
            std::string::npos);
  // A model of bytes has one token for each.
  EXPECT_NE(made_with([](auto& o) { o.bytes = true; }), "no error");
  expect_error("device must be cpu, cuda",
               [] { Model(small_options(), "gpu"); });
}

TEST(Model, IsLeftAsItWasWhereTheLossIsNotFinite) {
  auto options = small_options();
  options.learning_rate = 1e30;
  options.settings.push_back("train.optimizer=adam");
  Model model(options, "cpu");
  model.train_step(counting(0, 2, 48));
  const auto before = model.logits(counting(0, 1, 4));
  expect_error("train_step: the loss is not finite at step 2",
               [&] { model.train_step(counting(1, 2, 48)); });
  EXPECT_EQ(model.steps(), 1);
  EXPECT_TRUE(before.allclose(model.logits(counting(0, 1, 4)), 0, 0,
                              /*equal_nan=*/true));
}

}  // namespace
