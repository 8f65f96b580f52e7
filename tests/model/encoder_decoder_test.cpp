// The encoder-decoder: its gradients are autograd's through cross-attention and
// the encoder, and padding changes nothing.
#include "reformer/model/encoder_decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "reformer/base/errors.h"
#include "reformer/device/memory_meter.h"
#include "reformer/model/reversible_stack.h"
#include "tests/model/autograd_step.h"
#include "tests/model/small_translation.h"

namespace reformer {
namespace {

// block, the decoder's attention, the encoder's
using Case = std::tuple<std::string, std::string, std::string>;

class Translation : public testing::TestWithParam<Case> {
 protected:
  static Config config() {
    auto config = small_translation_config(std::get<1>(GetParam()),
                                           std::get<2>(GetParam()));
    config.model.block = std::get<0>(GetParam());
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Models, Translation,
    testing::Combine(testing::Values("reversible", "stored", "residual"),
                     testing::Values("full", "lsh,local,full_shared_qk"),
                     testing::Values("full", "lsh", "local,full_shared_qk")),
    [](const auto& instance) {
      auto name = std::get<0>(instance.param) + "_" +
                  std::get<1>(instance.param) + "_after_" +
                  std::get<2>(instance.param);
      std::replace(name.begin(), name.end(), ',', '_');
      return name;
    });

constexpr double kScale = 0.01;

void expect_autograds(const Config& config, double most) {
  EncoderDecoder model(config, at::kDouble);
  shake(model, 0.05);
  const auto batch = padded_pairs(config, 1);
  const auto expected =
      autograd_gradients(model, batch, training_pass(), kScale);
  const auto found = step_of(model, batch, kScale).gradients;
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_GT(expected[i].abs().max().item<double>(), 0) << found[i].name;
    EXPECT_LE(relative_error(found[i].value, expected[i]), most)
        << found[i].name;
  }
}

TEST_P(Translation, GradientsAreAutogradsInFloat64) {
  expect_autograds(config(), 1e-9);
}

// One matrix whose gradient is of three uses; tables of positions; no dropout.
TEST_P(Translation, GradientsAreAutogradsOfSharedEmbeddings) {
  auto changed = config();
  changed.model.share_embeddings = true;
  changed.model.positions = "learned";
  changed.model.dropout = 0;
  changed.model.activation = "relu";
  expect_autograds(changed, 1e-9);
}

TEST_P(Translation, GradientsAreAutogradsWithRotaryPositions) {
  auto changed = config();
  changed.model.positions = "rotary";
  changed.model.successor_fraction = 0.5;
  changed.train.label_smoothing = 0;
  expect_autograds(changed, 1e-9);
}

// The tolerance of fast code: the error may be twice that of autograd in the
// same precision.
TEST_P(Translation, GradientsAreAsExactAsAutogradsInFloat32) {
  EncoderDecoder model(config());
  shake(model, 0.05);
  EncoderDecoder reference(config(), at::kDouble);
  copy_parameters(model, reference);
  const auto batch = padded_pairs(config(), 1);
  const auto slow = autograd_gradients(model, batch, training_pass(), kScale);
  const auto fast = step_of(model, batch, kScale).gradients;
  const auto exact =
      autograd_gradients(reference, batch, training_pass(), kScale);
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_LE(relative_error(fast[i].value, exact[i]),
              2 * relative_error(slow[i], exact[i]) + 8 * 0x1p-23)
        << fast[i].name;
  }
}

TEST_P(Translation, OfASecondStepGradientsAddUp) {
  EncoderDecoder model(config(), at::kDouble);
  shake(model, 0.05);
  const auto batch = padded_pairs(config(), 1);
  std::vector<at::Tensor> once;
  for (const auto& [name, gradient] : step_of(model, batch).gradients) {
    once.push_back(gradient.clone());
  }
  model.add_gradients(batch, training_pass(), kScale);
  for (size_t i = 0; i < once.size(); ++i) {
    const auto& parameter = model.parameters()[i];
    EXPECT_LE(relative_error(parameter.gradient(), once[i] * 2), 1e-12)
        << parameter.name;
  }
}

TEST_P(Translation, AStepLeavesItsGradientsAlone) {
  EncoderDecoder model(config());
  const auto batch = padded_pairs(config(), 1);
  step_of(model, batch);
  const MemoryMeter meter;
  model.add_gradients(batch, training_pass(), kScale);
  EXPECT_GT(meter.peak_bytes(), 0);
  EXPECT_EQ(meter.in_use_bytes(), 0);
}

// The loss and the gradients of a batch are the sums of its rows', each without
// padding: without dropout, of which rows have their own.
TEST_P(Translation, PaddingChangesNoResultOfASentence) {
  auto config = Translation::config();
  config.model.dropout = 0;
  EncoderDecoder model(config, at::kDouble);
  shake(model, 0.05);
  const auto batch = padded_pairs(config, 1);
  const auto together = step_of(model, batch);
  LossSums sums;
  std::vector<at::Tensor> gradients;
  for (int64_t row = 0; row < 3; ++row) {
    const auto one = step_of(model, alone(batch, row));
    sums += one.sums;
    for (size_t i = 0; i < one.gradients.size(); ++i) {
      const auto& gradient = one.gradients[i].value;
      if (row == 0) {
        gradients.push_back(gradient.clone());
      } else {
        gradients[i] += gradient;
      }
    }
    EXPECT_NEAR(model.evaluate(alone(batch, row), training_pass()).loss,
                one.sums.loss, 1e-10);
  }
  EXPECT_EQ(together.sums.count, sums.count);
  EXPECT_EQ(together.sums.correct, sums.correct);
  EXPECT_NEAR(together.sums.loss, sums.loss, 1e-10);
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_LE(relative_error(together.gradients[i].value, gradients[i]), 1e-9)
        << together.gradients[i].name;
  }
}

// To the bit, in float32 and with dropout: nothing reads it.
TEST_P(Translation, WhatStandsInThePaddingIsNotRead) {
  EncoderDecoder model(config());
  shake(model, 0.05);
  const auto zeros = step_of(model, padded_pairs(config(), 1, /*padding=*/0));
  const auto others = step_of(model, padded_pairs(config(), 1, /*padding=*/5));
  EXPECT_EQ(zeros.sums.loss, others.sums.loss);
  for (size_t i = 0; i < zeros.gradients.size(); ++i) {
    EXPECT_TRUE(at::equal(zeros.gradients[i].value, others.gradients[i].value))
        << zeros.gradients[i].name;
  }
}

TEST_P(Translation, LogitsAreThoseOfTheLoss) {
  EncoderDecoder model(config(), at::kDouble);
  shake(model, 0.05);
  const auto batch = padded_pairs(config(), 1);
  const auto source =
      model.encode(batch.source, batch.source_mask, evaluation_pass());
  const auto log_p =
      model.logits(batch.tokens, source, evaluation_pass()).log_softmax(2);
  const auto losses = log_p.gather(2, batch.tokens.unsqueeze(2)).squeeze(2);
  const auto sums = model.evaluate(batch, evaluation_pass());
  EXPECT_EQ(sums.count, 29 + 5 + 17);
  EXPECT_NEAR(sums.loss, -(losses * batch.loss_mask).sum().item<double>(),
              1e-9);
}

// Each token is predicted from those before it alone.
TEST_P(Translation, ATokenDoesNotSeeItselfNorWhatFollows) {
  auto config = Translation::config();
  config.lsh.window = Window::kTrailing;  // chunks are not exactly causal
  EncoderDecoder model(config, at::kDouble);
  shake(model, 0.05);
  const auto batch = padded_pairs(config, 1);
  const auto source =
      model.encode(batch.source, batch.source_mask, evaluation_pass());
  const auto changed = batch.tokens.clone();
  changed.slice(1, 11).add_(1).remainder_(config.model.vocabulary);
  const auto before = model.logits(batch.tokens, source, evaluation_pass());
  const auto after = model.logits(changed, source, evaluation_pass());
  EXPECT_LE(relative_error(after.narrow(1, 0, 12), before.narrow(1, 0, 12)),
            1e-12);
  EXPECT_GT(relative_error(after.slice(1, 12), before.slice(1, 12)), 1e-3);
}

// An encoder looks both ways: what comes last matters to what comes first.
TEST_P(Translation, TheEncoderSeesWhatFollows) {
  EncoderDecoder model(config(), at::kDouble);
  shake(model, 0.05);
  const auto batch = padded_pairs(config(), 1);
  auto source = batch.source.narrow(0, 0, 1).narrow(1, 0, 5).clone();
  const auto first = [&] {
    return model.encode(source, {}, evaluation_pass()).output.select(1, 0);
  };
  const auto before = first();
  source.select(1, 4).add_(1).remainder_(config().model.vocabulary);
  EXPECT_GT(relative_error(first(), before), 1e-6);
}

ReversibleStack& reversible(const Stack& stack) {
  return dynamic_cast<ReversibleStack&>(const_cast<Stack&>(stack));
}

TEST(EncoderDecoder, ReversibleIsTheFunctionOfStoredToTheBit) {
  auto config = small_translation_config("lsh,local,full", "lsh,full");
  const auto batch = padded_pairs(config, 1);
  EncoderDecoder rebuilt(config);
  config.model.block = "stored";
  EncoderDecoder stored(config);
  const auto one = step_of(rebuilt, batch);
  const auto other = step_of(stored, batch);
  EXPECT_EQ(one.sums.loss, other.sums.loss);
  expect_same_step(one, other, 1e-4);
}

TEST(EncoderDecoder, RebuildsTheInputOf24DecoderLayers) {
  auto config = small_translation_config("full,lsh,local");
  config.model.layers = 24;
  EncoderDecoder model(config);
  shake(model, 0.05);
  auto pass = training_pass();
  const auto batch = padded_pairs(config, 1);
  pass.source = model.encode(batch.source, batch.source_mask, pass);
  pass.source.gradient = at::zeros_like(pass.source.output);
  const Streams x{normal_numbers({3, 29, 24}, 1),
                  normal_numbers({3, 29, 24}, 2)};
  auto& stack = reversible(model.decoder());
  const auto y = stack.forward({x.x1.clone(), x.x2.clone()}, pass);
  EXPECT_GT(relative_error(y.x1, x.x1), 1);  // the layers do something
  stack.backward(y, {at::zeros_like(y.x1), at::zeros_like(y.x2)});
  EXPECT_LE(relative_error(y.x1, x.x1), 1e-4);
  EXPECT_LE(relative_error(y.x2, x.x2), 1e-4);
}

// Attention, cross-attention, feed-forward: the streams change roles from layer
// to layer.
TEST(Stack, BranchesAlternateBetweenTheStreams) {
  auto config = small_translation_config();
  const auto places_of = [](const Stack& stack) {
    std::vector<std::pair<int64_t, int>> places;
    const auto note = [&](const BranchPlace& at, const auto&) {
      EXPECT_EQ(at.from, stack.two_streams() ? 1 - at.to : 0);
      places.emplace_back(at.block, at.to);
    };
    stack.for_each_branch(stack.count(), note, note);
    std::vector<std::pair<int64_t, int>> back;
    const auto note_back = [&](const BranchPlace& at, const auto&) {
      back.emplace_back(at.block, at.to);
    };
    stack.for_each_branch_backward(note_back, note_back);
    std::reverse(back.begin(), back.end());
    EXPECT_EQ(back, places);
    return places;
  };
  using Places = std::vector<std::pair<int64_t, int>>;
  const EncoderDecoder model(config);
  EXPECT_EQ(places_of(model.encoder()),
            (Places{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
  EXPECT_EQ(places_of(model.decoder()), (Places{{0, 0},
                                                {0, 1},
                                                {0, 0},
                                                {1, 1},
                                                {1, 0},
                                                {1, 1},
                                                {2, 0},
                                                {2, 1},
                                                {2, 0}}));
  config.model.block = "residual";
  const EncoderDecoder residual(config);
  for (const auto& [block, to] : places_of(residual.decoder())) {
    EXPECT_EQ(to, 0);
  }
}

// Smoothing is of the gradients: they vanish where the model predicts what is
// smoothed, and losses are reported as they are without it.
TEST(EncoderDecoder, LossesDoNotKnowOfLabelSmoothing) {
  auto config = small_translation_config();
  const auto batch = padded_pairs(config, 1);
  EncoderDecoder smooth(config);
  config.train.label_smoothing = 0;
  EncoderDecoder sharp(config);
  const auto one = step_of(smooth, batch);
  const auto other = step_of(sharp, batch);
  EXPECT_EQ(one.sums.loss, other.sums.loss);
  EXPECT_GT(relative_error(one.gradients[0].value, other.gradients[0].value),
            1e-3);
}

TEST(EncoderDecoder, SharesOneMatrixOnlyWhereAsked) {
  auto config = small_translation_config();
  const auto matrices = [&] {
    const EncoderDecoder model(config);
    std::vector<std::string> names;
    for (const auto& parameter : model.parameters()) {
      const auto& name = parameter.name;
      if (name.find("embedding") != std::string::npos ||
          name == "head.weight") {
        names.push_back(name);
      }
    }
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(matrices(), (Names{"embedding.weight", "source.embedding.weight",
                               "head.weight"}));
  config.model.share_embeddings = true;
  EXPECT_EQ(matrices(), Names{"embedding.weight"});
}

TEST(EncoderDecoder, DropsOtherElementsInEveryBranchAndEmbedding) {
  auto config = small_translation_config();
  config.model.dropout = 0.5;
  const EncoderDecoder model(config);
  const auto x = normal_numbers({1, 20, 24}, 1);
  auto pass = training_pass();
  pass.source = {normal_numbers({1, 20, 24}, 2), {}};
  std::vector<at::Tensor> dropped = {
      model.dropped(x, StackKind::kEncoder, pass).eq(0),
      model.dropped(x, StackKind::kDecoder, pass).eq(0)};
  const auto attention = [&](const BranchPlace&, const AttentionLayer& layer) {
    at::Tensor buckets;
    dropped.push_back(layer.forward(x, pass, buckets).eq(0));
  };
  const auto feed_forward = [&](const BranchPlace&, const FeedForward& layer) {
    dropped.push_back(layer.forward(x, pass, 0).eq(0));
  };
  for (const auto* stack : {&model.encoder(), &model.decoder()}) {
    stack->for_each_branch(stack->count(), attention, feed_forward);
  }
  ASSERT_EQ(dropped.size(), 2u + 2 * 2 + 3 * 3);
  for (size_t i = 0; i < dropped.size(); ++i) {
    EXPECT_GT(dropped[i].sum().item<int64_t>(), 0);
    for (size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(at::equal(dropped[i], dropped[j])) << i << " " << j;
    }
  }
}

TEST(EncoderDecoder, OverflowIsCountedInLshLayersOfBothStacks) {
  auto config = small_translation_config("full", "full");
  const auto overflow = [&] {
    const EncoderDecoder model(config);
    return model.overflow(alone(padded_pairs(config, 1), 0), evaluation_pass());
  };
  EXPECT_EQ(overflow(), 0);
  config.lsh.chunk_length = 2;
  config.lsh.n_buckets = 2;
  config.model.encoder_attention = "lsh";
  EXPECT_GT(overflow(), 0);
  config.model.encoder_attention = "full";
  config.model.attention = "lsh";
  EXPECT_GT(overflow(), 0);
}

// Beyond parameters, gradients and bucket ids.
TEST(EncoderDecoder, MemoryDoesNotGrowWithLayers) {
  const OneThread one_thread;
  auto config = small_translation_config();
  config.train.batch = 3;
  const auto working = [&](int64_t layers) {
    config.model.layers = config.model.encoder_layers = layers;
    EncoderDecoder model(config);
    const auto batch = padded_pairs(config, 1);
    step_of(model, batch);
    const MemoryMeter meter;
    model.add_gradients(batch, training_pass(), kScale);
    return double(meter.peak_bytes());
  };
  EXPECT_LE(working(24), 1.02 * working(6));
}

TEST(EncoderDecoder, RefusesBatchesWithoutASource) {
  const auto config = small_translation_config();
  EncoderDecoder model(config);
  auto batch = padded_pairs(config, 1);
  batch.source.reset();
  EXPECT_THROW(model.evaluate(batch, evaluation_pass()), Error);
  EXPECT_THROW(model.add_gradients(batch, training_pass(), 1), Error);
}

TEST(EncoderDecoder, IsMadeByEncoderLayers) {
  auto config = small_translation_config();
  EXPECT_NE(dynamic_cast<EncoderDecoder*>(make_model(config).get()), nullptr);
  EXPECT_THROW(LanguageModel{config}, Error);
  config.model.encoder_layers = 0;
  EXPECT_NE(dynamic_cast<LanguageModel*>(make_model(config).get()), nullptr);
  EXPECT_THROW(EncoderDecoder{config}, Error);
}

}  // namespace
}  // namespace reformer
