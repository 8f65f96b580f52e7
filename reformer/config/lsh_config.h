// The settings of LSH attention, listed once (paper Sec. 2).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "reformer/config/choice.h"

namespace reformer {

// Which places of the sorted order a query may reach within its bucket.
enum class Window {
  kChunk,     // the paper's: the query's own chunk and the previous one
  kTrailing,  // the last chunk_length places: exactly causal
};

template <>
struct ChoiceNames<Window> {
  static constexpr std::string_view key = "lsh.window";
  static constexpr std::string_view names[] = {"chunk", "trailing"};
};

// Heads that hash; kSuccessor: those with successor values.
enum class HashedHeads { kAll, kSuccessor };

template <>
struct ChoiceNames<HashedHeads> {
  static constexpr std::string_view key = "lsh.hashed_heads";
  static constexpr std::string_view names[] = {"all", "successor"};
};

// Heads that see the local window; kOther: those without successor values.
enum class LocalHeads { kAll, kOther };

template <>
struct ChoiceNames<LocalHeads> {
  static constexpr std::string_view key = "lsh.local_heads";
  static constexpr std::string_view names[] = {"all", "other"};
};

// What a softmax goes over where there are more rounds than in training; as
// many at a time as there, and then the weights of these groups add up.
enum class MoreRounds { kUnion, kGroups };

template <>
struct ChoiceNames<MoreRounds> {
  static constexpr std::string_view key = "lsh.more_rounds";
  static constexpr std::string_view names[] = {"union", "groups"};
};

struct LshConfig {
  int64_t rounds = 4;
  int64_t chunk_length = 128;
  int64_t n_buckets = 0;
  int64_t local_window = 0;
  Choice<Window> window = Window::kTrailing;
  bool causal = true;
  Choice<HashedHeads> hashed_heads = HashedHeads::kAll;
  Choice<LocalHeads> local_heads = LocalHeads::kAll;
  std::vector<int64_t> ngrams = {};
  Choice<MoreRounds> more_rounds = MoreRounds::kUnion;

  template <class Visitor>
  void visit(Visitor&& v) {
    v("lsh.rounds", rounds, "independent hash rounds (paper Sec. 2)");
    v("lsh.chunk_length", chunk_length, "m: sorted positions per chunk");
    v("lsh.n_buckets", n_buckets, "buckets a round; 0: by training length");
    v("lsh.local_window", local_window,
      "last positions joined as one more round; 0: none, as in the paper");
    v("lsh.hashed_heads", hashed_heads,
      "heads that hash: all, or successor: those without successor values then "
      "attend to the last lsh.local_window positions alone");
    v("lsh.local_heads", local_heads,
      "heads that see the last lsh.local_window positions: all, or other, "
      "those without successor values; the rest then hash alone");
    v("lsh.ngrams", ngrams,
      "more rounds, each of an n from 2 to 8: a bucket is where the last n "
      "inputs are the same");
    v("lsh.more_rounds", more_rounds,
      "evaluated with more rounds than lsh.rounds a softmax goes over their "
      "union, as in the paper, or over groups of lsh.rounds of them, whose "
      "weights add up: what training was like, with less chance in it");
    v("lsh.window", window, "chunk (the paper's) or trailing");
    v("lsh.causal", causal, "attend to the past only");
  }
};

// Rounds with buckets, of hashes and of n-grams.
inline int64_t bucket_rounds(const LshConfig& config) {
  return config.rounds + static_cast<int64_t>(config.ngrams.size());
}

// How many of `rounds` with buckets a softmax goes over at a time.
inline int64_t rounds_together(const LshConfig& config, int64_t rounds) {
  const bool groups =
      config.more_rounds == MoreRounds::kGroups && rounds > config.rounds;
  return groups ? config.rounds : rounds;
}

// What the rotations of a layer are drawn from: the same key, the same hash.
struct HashKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t layer = 0;
  const uint64_t* step_on_device = nullptr;  // of a GPU: read instead of `step`
};

}  // namespace reformer
