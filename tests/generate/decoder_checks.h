// The reference of a decoder, on any device: the whole pass of the same model.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/generate/decoder.h"
#include "tests/support/duplication_config.h"

namespace reformer::decoding {

inline constexpr int64_t kLength = 78;
inline constexpr int64_t kVocabulary = 23;

// Few buckets and few tokens: buckets are longer than their windows.
inline Config small_config(const std::string& attention) {
  Config config = duplication_config(kVocabulary, 32, 40, kLength);
  config.model.layers = 3;
  config.model.attention = attention;
  config.lsh.chunk_length = 7;
  config.lsh.n_buckets = 6;
  config.train.batch = 1;
  config.train.seed = 5;
  return config;
}

inline at::Tensor random_tokens(int64_t batch, int64_t length) {
  const auto random = at::detail::createCPUGenerator(/*seed=*/3);
  return at::randint(kVocabulary, {batch, length}, random,
                     at::TensorOptions().dtype(at::kLong));
}

inline Pass evaluation_pass(const Config& config, int64_t rounds = 0) {
  Pass pass;
  pass.seed = static_cast<uint64_t>(config.train.seed);
  pass.rounds = rounds;
  return pass;
}

inline at::Tensor whole_pass(const LanguageModel& model,
                             const at::Tensor& tokens,
                             Decoder::Buckets* buckets = nullptr,
                             int64_t rounds = 0) {
  return model.logits(tokens, evaluation_pass(model.config(), rounds), buckets);
}

// Positions from `first[row]` on of every layer's buckets.
inline Decoder::Buckets part_of(const Decoder::Buckets& whole,
                                const std::vector<int64_t>& first,
                                int64_t length) {
  Decoder::Buckets part;
  for (const auto& buckets : whole) {
    std::vector<at::Tensor> rows;
    for (std::size_t row = 0; row < first.size() && buckets.defined(); ++row) {
      rows.push_back(buckets
                         .view(at::kShort)  // which cat knows
                         .narrow(0, static_cast<int64_t>(row), 1)
                         .narrow(3, first[row], length));
    }
    part.push_back(rows.empty() ? at::Tensor()
                                : at::cat(rows).view(at::kUInt16));
  }
  return part;
}

inline double difference(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return (a - b).abs().max().item<double>();
}

// Texts whose first `prompts` tokens are read at once and `steps` more one by
// one, with the buckets of the whole pass: a bucket that flips by rounding
// would change what is seen. Without LSH, steps as generating takes them.
// Logits within `bar` of their largest.
inline void expect_steps_equal_the_whole(const LanguageModel& model,
                                         const std::vector<int64_t>& prompts,
                                         int64_t steps, double bar,
                                         const std::string& name,
                                         int64_t rounds = 0) {
  const auto batch = static_cast<int64_t>(prompts.size());
  const int64_t longest = *std::max_element(prompts.begin(), prompts.end());
  const auto tokens = random_tokens(batch, longest + steps + 1);
  Decoder::Buckets buckets;
  const auto whole = whole_pass(model, tokens, &buckets, rounds);
  const double most = bar * whole.abs().max().item<double>();
  const auto expected = [&](int64_t step) {
    std::vector<at::Tensor> rows;
    for (int64_t row = 0; row < batch; ++row) {
      rows.push_back(whole[row].narrow(0, prompts[row] + step, 1));
    }
    return at::cat(rows);
  };
  Decoder decoder(model, batch, rounds);
  auto first = part_of(buckets, std::vector<int64_t>(batch, 0), longest + 1);
  const auto read =
      decoder.prefill(tokens.narrow(1, 0, longest), prompts, &first);
  EXPECT_LE(difference(read, expected(0)), most) << name << ", prompt";
  auto next = prompts;
  for (int64_t step = 1; step <= steps; ++step) {
    std::vector<at::Tensor> inputs;
    for (int64_t row = 0; row < batch; ++row) {
      inputs.push_back(tokens[row].narrow(0, next[row], 1));
      ++next[row];
    }
    auto given = part_of(buckets, next, 1);
    const bool hashed = std::any_of(given.begin(), given.end(),
                                    [](const auto& x) { return x.defined(); });
    const auto logits =
        decoder.step(at::cat(inputs), hashed ? &given : nullptr);
    ASSERT_LE(difference(logits, expected(step)), most)
        << name << ", step " << step;
  }
}

inline int64_t differing(const Decoder::Buckets& a, const Decoder::Buckets& b) {
  int64_t n = 0;
  for (std::size_t layer = 0; layer < a.size(); ++layer) {
    n += a[layer].to(at::kInt).ne(b[layer].to(at::kInt)).sum().item<int64_t>();
  }
  return n;
}

// Of buckets that steps hash by themselves: how many are not the whole pass's.
inline double share_of_other_buckets(const LanguageModel& model, int64_t rows) {
  const int64_t length = model.config().train.length;
  const auto tokens = random_tokens(rows, length);
  Decoder::Buckets buckets;
  whole_pass(model, tokens, &buckets);
  Decoder decoder(model, rows);
  decoder.prefill(tokens.narrow(1, 0, 0), std::vector<int64_t>(rows, 0));
  int64_t flips = 0;
  int64_t count = 0;
  for (int64_t t = 0; t + 1 < length; ++t) {
    Decoder::Buckets hashed;
    decoder.step(tokens.select(1, t), &hashed);
    flips += differing(hashed,
                       part_of(buckets, std::vector<int64_t>(rows, t + 1), 1));
    for (const auto& layer : hashed) count += layer.numel();
  }
  EXPECT_GT(count, 30000);
  return double(flips) / double(count);
}

// Buckets of every layer for `length` positions of one row, all in range but
// for those of the last layer.
inline Decoder::Buckets wrong_buckets(const LanguageModel& model,
                                      int64_t length) {
  const auto& config = model.config();
  const auto buckets = [&](int64_t bucket) {
    return at::full({1, config.model.heads, config.lsh.rounds, length}, bucket,
                    at::kInt)
        .to(at::kUInt16)
        .to(model.placement().device);
  };
  Decoder::Buckets all(model.stack().blocks().size(), buckets(0));
  all.back() = buckets(config.lsh.n_buckets);
  return all;
}

// Texts with and without refused prompts and steps in between are the same.
inline void expect_refusal_changes_nothing(const LanguageModel& model) {
  const auto tokens = random_tokens(1, kLength);
  const auto last_logits = [&](bool refused) {
    Decoder decoder(model);
    auto wrong = wrong_buckets(model, 11);
    if (refused) {
      EXPECT_THROW(decoder.prefill(tokens, {10}, &wrong), Error);
    }
    decoder.prefill(tokens, {10});
    at::Tensor logits;
    for (int64_t t = 10; t < 20; ++t) {
      wrong = wrong_buckets(model, 1);
      if (refused) {
        EXPECT_THROW(decoder.step(tokens.select(1, t), &wrong), Error);
      }
      logits = decoder.step(tokens.select(1, t));
    }
    return logits;
  };
  EXPECT_TRUE(last_logits(true).equal(last_logits(false)));
}

}  // namespace reformer::decoding
