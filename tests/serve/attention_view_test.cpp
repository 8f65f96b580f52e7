#include "cli/serve/attention_view.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "reformer/base/interruption.h"
#include "tests/support/duplication_config.h"

namespace reformer::cli {
namespace {

constexpr int64_t kVocabulary = 23;
constexpr int64_t kLength = 60;
constexpr int64_t kHead = 64;  // no text here is longer

Config small_config(const std::string& attention) {
  auto config = duplication_config(kVocabulary, 16, 16, kLength);
  config.model.attention = attention;
  config.model.layers = 3;
  config.model.heads = 2;
  config.model.d_head = kHead;
  config.lsh.chunk_length = 8;
  config.lsh.n_buckets = 6;
  config.lsh.rounds = 2;
  config.lsh.window = Window::kTrailing;
  if (attention.find("huggingface") != std::string::npos) {
    config.model.bucket_factors = {2, 2};
    config.lsh.local_window = 0;
  }
  return config;
}

AttentionRequest request_of(int64_t position, int64_t length = kLength) {
  AttentionRequest request;
  for (int64_t i = 0; i < length; ++i) {
    request.tokens.push_back((7 * i * i + i) % kVocabulary);
  }
  request.position = position;
  return request;
}

std::map<int64_t, double> weights_of(const nlohmann::ordered_json& answer) {
  std::map<int64_t, double> weights;
  for (const auto& one : answer["attended"]) {
    weights[one[0].get<int64_t>()] = one[1].get<double>();
  }
  return weights;
}

// What the first layer's attention of values that are unit vectors gives the
// last position of a text: a weight of each position.
std::map<int64_t, double> computed(const LanguageModel& model, int64_t head,
                                   const AttentionRequest& request) {
  const at::NoGradGuard no_grad;
  const int64_t length = request.position + 1;
  std::vector<int64_t> inputs = {model.start_token()};
  inputs.insert(inputs.end(), request.tokens.begin(),
                request.tokens.begin() + request.position);
  const auto x = model.stack().begin(
      model.embed(at::tensor(inputs).view({1, -1}), 0, length));
  const auto& layer = model.stack().blocks()[0].attention;
  Pass pass;
  pass.seed = static_cast<uint64_t>(model.config().train.seed);
  pass.rounds = request.rounds;
  auto projected = layer.project(x.x2);
  at::Tensor buckets;
  layer.hash(projected, pass, buckets);
  projected.v = at::eye(length, kHead).expand_as(projected.v).contiguous();
  const auto row = layer.attend(projected, buckets)[0][head][length - 1];
  std::map<int64_t, double> weights;
  for (int64_t i = 0; i < length; ++i) {
    const auto weight = row[i].item<double>();
    if (weight > 0) weights[i - 1] = weight;
  }
  return weights;
}

TEST(AttentionView, OfOneHeadIsWhatTheLayerComputes) {
  for (const char* attention :
       {"full", "full_shared_qk", "local", "local_separate_qk", "lsh",
        "lsh_huggingface"}) {
    const LanguageModel model(small_config(attention));
    AttentionView view(model);
    for (const int64_t position : {3, 7, 25, 58}) {
      auto request = request_of(position);
      request.layer = 0;
      for (request.head = 0; *request.head < 2; ++*request.head) {
        const auto told = weights_of(view.answer(request));
        const auto expected = computed(model, *request.head, request);
        for (const auto& [place, weight] : expected) {
          EXPECT_NEAR(told.contains(place) ? told.at(place) : 0, weight, 2e-6)
              << attention << " " << position << " " << place;
        }
        for (const auto& [place, weight] : told) {
          EXPECT_TRUE(weight < 1e-6 || expected.contains(place)) << place;
        }
      }
    }
  }
}

TEST(AttentionView, OfMoreRoundsInGroupsIsWhatTheLayerComputes) {
  auto config = small_config("lsh");
  config.lsh.local_window = 3;
  config.lsh.more_rounds = MoreRounds::kGroups;
  const LanguageModel model(config);
  AttentionView view(model);
  for (const int64_t position : {3, 25, 58}) {
    auto request = request_of(position);
    request.rounds = 5;
    request.layer = 0;
    request.head = 1;
    const auto told = weights_of(view.answer(request));
    const auto expected = computed(model, 1, request);
    for (const auto& [place, weight] : expected) {
      EXPECT_NEAR(told.contains(place) ? told.at(place) : 0, weight, 2e-6)
          << position << " " << place;
    }
    for (const auto& [place, weight] : told) {
      EXPECT_TRUE(weight < 1e-6 || expected.contains(place)) << place;
    }
  }
}

// What stands behind the position in question does not move it.
TEST(AttentionView, LaterTokensChangeNothing) {
  for (const char* attention :
       {"lsh", "lsh_huggingface", "local_separate_qk,lsh_huggingface"}) {
    const LanguageModel model(small_config(attention));
    AttentionView view(model);
    const auto after_a_longer = [&] {
      view.answer(request_of(kLength - 1));
      return view.answer(request_of(30));
    }();
    AttentionView other(model);
    EXPECT_EQ(after_a_longer, other.answer(request_of(30, 31))) << attention;
  }
}

TEST(AttentionView, WhatIsTooLongToKeepIsTheSame) {
  for (const char* attention : {"lsh,local,full", "lsh_huggingface"}) {
    const LanguageModel model(small_config(attention));
    AttentionView keeps(model);
    AttentionView keeps_not(model, /*most_bytes=*/0);
    auto request = request_of(50);
    EXPECT_EQ(keeps_not.answer(request), keeps.answer(request));
    EXPECT_EQ(keeps_not.answer(request)["heads"], 6);
    request.layer = 1;
    EXPECT_EQ(keeps_not.answer(request), keeps.answer(request));
    request.layer = 2;
    EXPECT_EQ(keeps_not.answer(request), keeps.answer(request));
  }
}

TEST(AttentionView, GivesTurnsAndHeedsAStop) {
  const LanguageModel model(small_config("lsh"));
  AttentionView view(model);
  const auto expected = AttentionView(model).answer(request_of(50));
  std::atomic<bool> stop = false;
  int64_t turns = 0;
  const std::function<void()> turn = [&] { stop = ++turns == 9; };
  {
    const Interruptible interruptible(&stop, &turn);
    EXPECT_THROW(view.answer(request_of(50)), Interrupted);
  }
  EXPECT_EQ(turns, 9);
  EXPECT_EQ(view.answer(request_of(50)), expected);
}

void expect_interruption_points_on_a_kept_text(const char* attention,
                                               int64_t points) {
  SCOPED_TRACE(attention);
  const LanguageModel model(small_config(attention));
  AttentionView view(model);
  const auto expected = view.answer(request_of(50));
  std::atomic<bool> stop = false;
  int64_t turns = 0;
  const std::function<void()> turn = [&] { stop = ++turns == points - 1; };
  {
    const Interruptible interruptible(&stop, &turn);
    EXPECT_THROW(view.answer(request_of(50)), Interrupted);
  }
  EXPECT_EQ(turns, points - 1);
  EXPECT_EQ(view.answer(request_of(50)), expected);
}

// For each head, and for each round whose buckets are sorted.
TEST(AttentionView, GivesTurnsAndHeedsAStopOnAKeptText) {
  constexpr int64_t kHeads = 3 * 2;
  expect_interruption_points_on_a_kept_text("lsh", kHeads);
  expect_interruption_points_on_a_kept_text("lsh_huggingface",
                                            kHeads * (1 + 2));
}

}  // namespace
}  // namespace reformer::cli
