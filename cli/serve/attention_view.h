// Where a model looked when it predicted a token.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/serve/attended_positions.h"
#include "cli/serve/completion_request.h"
#include "reformer/model/language_model.h"

namespace reformer::cli {

// The last text that somebody asked about is kept as far as the layers read it,
// so that one pass answers all questions on it and on what it begins with. Of
// one thread. With interruption points (base/interruption.h) between heads and
// in its passes: there on a CPU within kernels too, but a layer's attention of
// lsh_huggingface, all its heads and rounds, is one part. Of a pass that is
// interrupted nothing is kept.
class AttentionView {
 public:
  // Of queries and keys that are kept: of longer texts one layer is, or, where
  // all are asked for, none, and each question takes a pass.
  static constexpr int64_t kMostBytes = int64_t{1} << 29;

  // model must outlive it and not change, and have trailing windows: what a
  // position saw does not depend on what came after it. Under lsh_huggingface
  // it does; there the text ends with the position in question.
  explicit AttentionView(const LanguageModel& model,
                         int64_t most_bytes = kMostBytes);

  // Throws RequestError for tokens, layers, heads or rounds that are not there.
  // Of any thread.
  void check(const AttentionRequest& request) const;

  // {"position", "attended": [[token, weight, rounds], ...], "kind", ...}
  // where `token` is the place of the token in the text whose value was read
  // (-1: the start token), `weight` the softmax, a mean over layers and heads
  // where several are asked for, and `rounds` has a bit for each hash round
  // that found the pair; 0: it was near. The heaviest come first, kMost of them
  // at most. Throws as check does.
  nlohmann::ordered_json answer(const AttentionRequest& request);

  static constexpr int64_t kMost = 4096;

 private:
  using Read = std::function<void(int64_t layer, const LayerRows& rows)>;

  bool keeps(const AttentionRequest& request) const;
  bool keeps_all(int64_t length) const;
  void forget();
  void read(const std::vector<int64_t>& tokens, const AttentionRequest& request,
            const std::optional<int64_t>& only, const Read& done) const;
  void for_each_layer(const AttentionRequest& request, const Read& look);

  const LanguageModel& model_;
  int64_t most_bytes_;
  bool later_tokens_count_;
  std::vector<int64_t> tokens_;  // that were read
  int64_t rounds_ = 0;
  int64_t only_layer_ = -1;  // that was kept, of texts too long for all
  std::vector<LayerRows> layers_;
};

}  // namespace reformer::cli
