// Where a model looked when it predicted a token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/serve/completion_request.h"
#include "reformer/model/language_model.h"

namespace reformer::cli {

// The last text that somebody asked about is kept as far as the layers read it,
// so that one pass answers all questions on it and on what it begins with. Of
// one thread.
class AttentionView {
 public:
  // model must outlive it and not change, and have trailing windows: what a
  // position saw does not depend on what came after it.
  explicit AttentionView(const LanguageModel& model) : model_(model) {}

  // {"position", "attended": [[token, weight, rounds], ...], "kind", ...}
  // where `token` is the place of the token in the text whose value was read
  // (-1: the start token), `weight` the softmax, a mean over layers and heads
  // where several are asked for, and `rounds` has a bit for each hash round
  // that found the pair; 0: it was near. The heaviest come first, kMost of them
  // at most. Throws RequestError for layers, heads or rounds that are not
  // there.
  nlohmann::ordered_json answer(const AttentionRequest& request);

  static constexpr int64_t kMost = 4096;

 private:
  struct Layer {
    at::Tensor q;        // [heads, length, d_head] float32 on the CPU, turned
    at::Tensor k;        // likewise; undefined: shared with q
    at::Tensor buckets;  // [hashed heads, rounds, length]; undefined: none
  };
  struct Weight {
    double weight = 0;
    uint64_t rounds = 0;
  };

  void check(const AttentionRequest& request) const;
  void read(const AttentionRequest& request);
  void add_head(int64_t layer, int64_t head, int64_t position,
                std::vector<Weight>& weights) const;

  const LanguageModel& model_;
  std::vector<int64_t> tokens_;  // that were read
  int64_t rounds_ = 0;
  int64_t only_layer_ = -1;  // that was kept, of texts too long for all
  std::vector<Layer> layers_;
};

}  // namespace reformer::cli
