// The reference of BeamCache, on any device: the whole pass of every
// hypothesis.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reformer/base/philox.h"
#include "reformer/device/device.h"
#include "reformer/generate/beam_cache.h"
#include "tests/generate/decoder_checks.h"

namespace reformer::decoding {

// Hypotheses of a language model that are chosen at random: rows die, live on,
// and become several.
class BeamWalk {
 public:
  BeamWalk(const LanguageModel& model, int64_t most_rows)
      : model_(model), ancestors_(model.placement().device) {
    const auto pass = evaluation_pass(model.config());
    for (const auto& block : model.stack().blocks()) {
      caches_.emplace_back(block.attention, most_rows, pass, model.placement());
    }
  }

  // Logits [rows, vocabulary] after the texts' last tokens. `buckets`: of every
  // layer, as BeamCache::step's.
  at::Tensor step(const std::vector<int64_t>& parents,
                  const std::vector<int64_t>& tokens,
                  std::vector<at::Tensor>* buckets = nullptr) {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> unnamed;
    auto& used = buckets ? *buckets : unnamed;
    used.resize(caches_.size());
    std::vector<std::vector<int64_t>> texts;
    for (std::size_t row = 0; row < parents.size(); ++row) {
      texts.push_back(position_ == 0 ? std::vector<int64_t>{}
                                     : texts_[parents[row]]);
      if (position_ > 0) texts.back().push_back(tokens[row]);
    }
    texts_ = texts;
    const auto device = model_.placement().device;
    ancestors_.advance(copied_to(parents, device));
    const auto position =
        at::full({static_cast<int64_t>(parents.size())}, position_,
                 at::TensorOptions(device).dtype(at::kLong));
    auto y = model_.stack().begin(
        model_.embed_next(copied_to(tokens, device).unsqueeze(1), position)
            .unsqueeze(1));
    model_.stack().for_each_branch(
        model_.stack().count(),
        [&](const BranchPlace& at, const AttentionLayer&) {
          caches_[at.block].step(y[at.from], position, ancestors_,
                                 used[at.block], y[at.to]);
        },
        [&](const BranchPlace& at, const FeedForward& layer) {
          layer.add_to(y[at.to], y[at.from]);
        });
    ++position_;
    return model_.head().logits(y).squeeze(1);
  }

  const std::vector<std::vector<int64_t>>& texts() const { return texts_; }

 private:
  const LanguageModel& model_;
  BeamAncestors ancestors_;
  std::vector<BeamCache> caches_;
  std::vector<std::vector<int64_t>> texts_;
  int64_t position_ = 0;
};

// The largest difference from the whole passes over `length` steps.
inline double largest_difference(const LanguageModel& model, int64_t length) {
  constexpr int64_t kMostRows = 7;
  BeamWalk walk(model, kMostRows);
  double largest = 0;
  int64_t rows_before = 3;
  for (int64_t t = 0; t < length; ++t) {
    const auto random = [&](int64_t i, uint32_t what) {
      return static_cast<int64_t>(philox(
          {7, 8},
          {static_cast<uint32_t>(t), static_cast<uint32_t>(i), what, 0})[0]);
    };
    const int64_t rows = t == 0 ? 3 : 1 + random(0, 0) % kMostRows;
    std::vector<int64_t> parents;
    std::vector<int64_t> tokens;
    for (int64_t row = 0; row < rows; ++row) {
      parents.push_back(t == 0 ? row : random(row, 1) % rows_before);
      tokens.push_back(t == 0 ? model.start_token()
                              : random(row, 2) % kVocabulary);
    }
    rows_before = rows;
    const auto logits = walk.step(parents, tokens).cpu();
    if (t % 3 != 0 && t + 1 < length) continue;
    for (int64_t row = 0; row < rows; ++row) {
      auto text = walk.texts()[row];
      text.push_back(0);  // what it predicts does not matter
      const auto whole = whole_pass(
          model, at::tensor(at::ArrayRef<int64_t>(text)).unsqueeze(0));
      largest = std::max(largest, difference(logits[row], whole[0][t].cpu()));
    }
  }
  return largest;
}

}  // namespace reformer::decoding
