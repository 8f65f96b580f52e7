// The reference of a beam decoder, on any device: the whole pass of every
// hypothesis.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "reformer/base/philox.h"
#include "reformer/generate/beam_decoder.h"
#include "reformer/ops/top_tokens.h"

namespace reformer {

// Two layers of encoder, three of decoder.
inline Config beam_config(const std::string& attention,
                          const std::string& encoder_attention) {
  Config config;
  config.task.name = "none";
  config.model.encoder_layers = 2;
  config.model.encoder_attention = encoder_attention;
  config.model.layers = 3;
  config.model.attention = attention;
  config.model.d_model = 32;
  config.model.d_ff = 40;
  config.model.heads = 2;
  config.model.vocabulary = 23;
  config.model.positions = "sinusoid";
  config.lsh.rounds = 2;
  config.lsh.chunk_length = 7;
  config.lsh.n_buckets = 6;
  config.lsh.window = Window::kTrailing;
  config.train.length = 64;
  config.train.seed = 5;
  return config;
}

inline at::Tensor row_of(const std::vector<int64_t>& tokens) {
  return at::tensor(at::ArrayRef<int64_t>(tokens), at::kLong).unsqueeze(0);
}

// Logits [vocabulary] after `text`, from the whole of it.
inline at::Tensor whole_pass_after(const EncoderDecoder& model,
                                   const std::vector<int64_t>& source,
                                   std::vector<int64_t> text) {
  Pass pass;
  pass.seed = static_cast<uint64_t>(model.config().train.seed);
  const auto encoded = model.encode(row_of(source), {}, pass);
  text.push_back(0);  // what it predicts does not matter
  return model.logits(row_of(text), encoded, pass)[0][-1];
}

// Walks with hypotheses that are chosen at random; sentences leave on the way.
// The largest difference from whole passes.
inline double largest_difference(const EncoderDecoder& model, int64_t length) {
  constexpr int64_t kBeam = 3;
  const int64_t vocabulary = model.config().model.vocabulary;
  const std::vector<int64_t> lengths = {9, 31, 1, 17};
  const auto random = [](int64_t a, int64_t b, uint32_t what) {
    return static_cast<int64_t>(philox(
        {7, 8},
        {static_cast<uint32_t>(a), static_cast<uint32_t>(b), what, 0})[0]);
  };
  std::vector<std::vector<int64_t>> sources;
  const auto tokens = at::full({4, 31}, 3, at::kLong);
  for (int64_t s = 0; s < 4; ++s) {
    sources.emplace_back();
    for (int64_t i = 0; i < lengths[s]; ++i) {
      sources[s].push_back(random(s, i, 5) % vocabulary);
      tokens[s][i] = sources[s][i];
    }
  }
  BeamDecoder decoder(model, tokens, lengths, kBeam);
  std::vector<std::vector<int64_t>> texts;
  BeamRows rows;
  double largest = 0;
  for (int64_t t = 0; t < length; ++t) {
    BeamRows next;
    std::vector<std::vector<int64_t>> longer;
    for (int64_t s = 0; s < 4; ++s) {
      if (t > 5 * (s + 1)) continue;  // it has left
      std::vector<int64_t> own;       // rows of the step before
      for (std::size_t r = 0; r < rows.sentences.size(); ++r) {
        if (rows.sentences[r] == s) own.push_back(static_cast<int64_t>(r));
      }
      const int64_t n = t == 0 ? 1 : 1 + random(t, s, 6) % kBeam;
      for (int64_t i = 0; i < n; ++i) {
        next.sentences.push_back(s);
        if (t == 0) {
          next.tokens.push_back(model.start_token());
          next.parents.push_back(s);
          longer.emplace_back();
          continue;
        }
        const int64_t parent = own[random(t * 10 + i, s, 7) % std::ssize(own)];
        next.tokens.push_back(random(t * 10 + i, s, 8) % vocabulary);
        next.parents.push_back(parent);
        longer.push_back(texts[parent]);
        longer.back().push_back(next.tokens.back());
      }
    }
    rows = next;
    texts = longer;
    if (rows.tokens.empty()) break;
    const auto logits = decoder.logits(rows).cpu();
    if (t % 4 != 1) continue;
    for (std::size_t r = 0; r < texts.size(); ++r) {
      const auto expected =
          whole_pass_after(model, sources[rows.sentences[r]], texts[r]);
      largest =
          std::max(largest, (logits[static_cast<int64_t>(r)] - expected.cpu())
                                .abs()
                                .max()
                                .item<double>());
    }
  }
  return largest;
}

}  // namespace reformer
