#include "reformer/model/language_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "reformer/base/errors.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

constexpr int64_t kChanged = 31;

at::Tensor with_change_at(const at::Tensor& tokens, int64_t position,
                          int64_t vocabulary) {
  auto changed = tokens.clone();
  changed.select(1, position).add_(1).remainder_(vocabulary);
  return changed;
}

class Causality : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(LanguageModel, Causality,
                         testing::Values("lsh", "local", "full",
                                         "full_shared_qk"),
                         [](const auto& instance) { return instance.param; });

// Buckets are much longer than windows here: where attended sets could depend
// on the future, they would.
TEST_P(Causality, ALaterTokenNeverChangesAnEarlierPrediction) {
  auto config = small_config_of(GetParam());
  config.model.successor_fraction = 0.5;
  config.lsh.n_buckets = 2;
  config.lsh.local_window = 0;
  config.model.ngram_length = 3;
  config.model.ngram_rows = 50;
  config.lsh.ngrams = {2, 5};
  config.model.short_convolution = 5;
  LanguageModel model(config, at::kDouble);
  shake(model, 0.05);
  const auto tokens = random_tokens(config, 1);
  const auto before = model.logits(tokens, evaluation_pass());
  const auto after =
      model.logits(with_change_at(tokens, kChanged, config.model.vocabulary),
                   evaluation_pass());
  const int64_t later = config.train.length - kChanged - 1;
  EXPECT_LE(relative_error(after.narrow(1, 0, kChanged + 1),
                           before.narrow(1, 0, kChanged + 1)),
            1e-12);
  EXPECT_GE(relative_error(after.narrow(1, kChanged + 1, later),
                           before.narrow(1, kChanged + 1, later)),
            1e-3);
}

// What the loss should be, from the logits of all positions.
at::Tensor losses_of(const LanguageModel& model, const at::Tensor& tokens) {
  const auto logits = model.logits(tokens, evaluation_pass());
  return -at::log_softmax(logits, 2)
              .gather(2, tokens.unsqueeze(2))
              .squeeze(2);  // [batch, length]
}

TEST(LanguageModel, PredictsEveryTokenExactlyOnce) {
  const auto config = small_config();
  const LanguageModel model(config, at::kDouble);
  const auto tokens = random_tokens(config, 1);
  const auto sums = model.evaluate(tokens, all_of(tokens), evaluation_pass());
  EXPECT_EQ(sums.count, tokens.numel());
  EXPECT_NEAR(sums.loss, losses_of(model, tokens).sum().item<double>(),
              1e-9 * sums.loss);
  const auto best = model.logits(tokens, evaluation_pass()).argmax(2);
  EXPECT_EQ(sums.correct, best.eq(tokens).sum().item<int64_t>());
}

TEST(LanguageModel, TellsTheLossOfEveryToken) {
  auto config = small_config();
  config.model.loss_chunk = 16;  // in several parts
  LanguageModel model(config, at::kDouble);
  shake(model, 0.05);
  const auto tokens = random_tokens(config, 1);
  EXPECT_LE(relative_error(model.losses(tokens, evaluation_pass()),
                           losses_of(model, tokens)),
            1e-12);
}

TEST(LanguageModel, PredictsTheFirstTokenFromTheStartTokenAlone) {
  const auto config = small_config();
  LanguageModel model(config, at::kDouble);
  const auto first_prediction = [&](uint64_t seed) {
    return model.logits(random_tokens(config, seed), evaluation_pass())
        .narrow(1, 0, 1);
  };
  const auto before = first_prediction(1);
  EXPECT_LE(relative_error(first_prediction(2), before), 1e-12);
  const auto& embedding = model.parameters()[0];
  ASSERT_EQ(embedding.name, "embedding.weight");
  // Not all columns: layer norm takes what they share away.
  embedding.value.detach()[config.model.vocabulary].narrow(0, 0, 5).add_(1);
  EXPECT_GE(relative_error(first_prediction(1), before), 1e-3);
}

TEST(LanguageModel, CountsTheTokensThatTheWeightsSelect) {
  const auto config = small_config();
  const LanguageModel model(config, at::kDouble);
  const auto tokens = random_tokens(config, 1);
  const auto loss_mask = random_tokens(config, 9).remainder(3).eq(0);
  const auto sums = model.evaluate(tokens, loss_mask, evaluation_pass());
  EXPECT_EQ(sums.count, loss_mask.sum().item<int64_t>());
  EXPECT_NEAR(sums.loss,
              (losses_of(model, tokens) * loss_mask).sum().item<double>(),
              1e-9 * sums.loss);
  const auto none =
      model.evaluate(tokens, at::zeros_like(loss_mask), evaluation_pass());
  EXPECT_EQ(none.count, 0);
  EXPECT_EQ(none.loss, 0);
  EXPECT_EQ(none.correct, 0);
}

TEST(LanguageModel, AddsTheGradientsOfOneBatchToThoseOfTheNext) {
  const auto config = small_config();
  LanguageModel model(config, at::kDouble);
  const auto tokens = random_tokens(config, 1);
  const auto some = random_tokens(config, 9).remainder(3).eq(0);
  const auto together = step_of(model, tokens);
  model.zero_gradients();
  const double scale = 1.0 / double(tokens.numel());
  model.train(tokens, some, training_pass(), scale);
  model.train(tokens, some.logical_not(), training_pass(), scale);
  for (size_t i = 0; i < together.gradients.size(); ++i) {
    const auto& [name, gradient] = together.gradients[i];
    EXPECT_LE(relative_error(model.parameters()[i].gradient(), gradient), 1e-11)
        << name;
  }
}

TEST(LanguageModel, TrainsOnTheLossThatItEvaluates) {
  const auto config = small_config();
  LanguageModel model(config);
  const auto tokens = random_tokens(config, 1);
  const auto trained = step_of(model, tokens).sums;
  const auto evaluated =
      model.evaluate(tokens, all_of(tokens), training_pass());
  EXPECT_EQ(trained.loss, evaluated.loss);
  EXPECT_EQ(trained.correct, evaluated.correct);
}

TEST(LanguageModel, ARowAloneEqualsTheRowInABatch) {
  const auto config = small_config();
  const LanguageModel model(config, at::kDouble);
  const auto tokens = random_tokens(config, 1);
  const auto both = model.logits(tokens, evaluation_pass());
  for (int64_t row = 0; row < 2; ++row) {
    const auto alone =
        model.logits(tokens.narrow(0, row, 1), evaluation_pass());
    EXPECT_LE(relative_error(alone, both.narrow(0, row, 1)), 1e-12);
  }
}

TEST(LanguageModel, EvaluatesWithMoreRoundsThanItTrainedWith) {
  const auto config = small_config();
  const LanguageModel model(config);
  const auto tokens = random_tokens(config, 1);
  auto pass = evaluation_pass();
  pass.rounds = 9;
  EXPECT_EQ(buckets_of(model, tokens, pass)[0].size(2), 9);
  EXPECT_EQ(buckets_of(model, tokens, evaluation_pass())[0].size(2),
            config.lsh.rounds);
}

TEST(LanguageModel, ReportsOverflowWhereBucketsAreLongerThanWindows) {
  auto config = small_config();
  config.lsh.n_buckets = 2;
  const auto tokens = random_tokens(config, 1);
  EXPECT_GT(LanguageModel(config).overflow(tokens, evaluation_pass()), 0.3);
  config.lsh.chunk_length = config.train.length;
  EXPECT_EQ(LanguageModel(config).overflow(tokens, evaluation_pass()), 0);
  EXPECT_EQ(LanguageModel(small_config_of("full"))
                .overflow(tokens, evaluation_pass()),
            0);
}

// Alike is alike, however far apart: the first layer's queries are of tokens.
TEST(LanguageModel, RotaryPositionsComeAfterTheHash) {
  auto config = small_config_of("lsh");
  config.model.positions = "rotary";
  const LanguageModel model(config, at::kDouble);
  const auto tokens = at::zeros({2, config.train.length}, at::kLong);
  std::vector<at::Tensor> buckets;
  model.logits(tokens, evaluation_pass(), &buckets);
  const auto first = buckets[0].to(at::kLong).narrow(3, 1, tokens.size(1) - 1);
  EXPECT_TRUE((first == first.narrow(3, 0, 1)).all().item<bool>());
}

TEST(LanguageModel, RotaryPositionsLeaveSuccessorHeadsAlone) {
  auto config = small_config_of("lsh");
  config.model.positions = "rotary";
  config.model.successor_fraction = 0.5;
  const LanguageModel model(config, at::kDouble);
  const auto& layer = model.stack().blocks()[0].attention;
  const at::NoGradGuard no_grad;
  const auto projected = layer.project(
      model.embed(random_tokens(config, 1), 0, config.train.length));
  const auto turned = layer.turned(projected).q;
  EXPECT_TRUE(at::equal(turned.select(1, 0), projected.q.select(1, 0)));
  EXPECT_FALSE(at::equal(turned.select(1, 1), projected.q.select(1, 1)));
}

TEST(LanguageModel, LearnsFromASingleToken) {
  auto config = small_config();
  LanguageModel model(config);
  config.train.length = 1;
  const auto step = step_of(model, random_tokens(config, 1));
  EXPECT_EQ(step.sums.count, 2);
  for (const auto& [name, gradient] : step.gradients) {
    EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << name;
  }
}

TEST(LanguageModel, RejectsTokensThatAreNotRowsOfIntegers) {
  const LanguageModel model(small_config());
  const auto tokens = random_tokens(small_config(), 1);
  EXPECT_THROW(model.logits(tokens[0], evaluation_pass()), Error);
  EXPECT_THROW(model.logits(tokens.to(at::kInt), evaluation_pass()), Error);
}

}  // namespace
}  // namespace reformer
