// Beam search: the best outputs of whatever says how probable a next token is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace reformer {

struct BeamConfig {
  int64_t beam = 4;             // hypotheses of a sentence that go on at a time
  double length_penalty = 0.6;  // alpha
  int64_t n_best = 1;           // hypotheses that are returned, up to `beam`
  int64_t start_token = 0;
  int64_t end_token = 0;
};

// What the log-probability of n tokens, the end token among them, is divided
// by: ((5 + n) / 6)^alpha (Wu et al. 2016, Sec. 7; the paper's alpha is 0.6).
double length_penalty(int64_t n, double alpha);

struct Hypothesis {
  std::vector<int64_t> tokens;  // without the end token
  double log_probability = 0;   // with it
  double score = 0;             // log_probability / length_penalty
};

// What the next step reads. Rows of a sentence lie side by side; a sentence
// that is finished has none.
struct BeamRows {
  std::vector<int64_t> tokens;     // the last one of each hypothesis
  std::vector<int64_t> parents;    // the row of the step before that it was a
                                   // part of; in the first step the sentence
  std::vector<int64_t> sentences;  // which it translates
};

// The search of a batch of sentences, which do not influence each other. It
// knows no model: whoever has one computes `rows`, and calls `advance`.
//
// Of all continuations of a sentence's hypotheses the most probable `beam` that
// do not end go on, and those that end and are among the most probable `beam`
// are finished. After its longest output a hypothesis can only end. The search
// of a sentence ends when `beam` hypotheses are finished, or none that goes on
// can have a better score than the n_best finished ones: then going on would
// change nothing. A beam of 1 is greedy. Equals are ordered by their row, then
// by their token.
class BeamSearch {
 public:
  // longest: of each sentence's output, without the end token. Throws Error for
  // an impossible config.
  BeamSearch(const BeamConfig& config, std::vector<int64_t> longest);

  bool done() const { return rows_.tokens.empty(); }
  const BeamRows& rows() const { return rows_; }

  // How many of each row's most probable tokens `advance` needs.
  int64_t wanted() const { return config_.beam + 1; }

  //   top  [rows, 2 k + 1] float64 on the CPU: top_tokens's, with the end token
  //        as the one besides; k is `wanted`, or the vocabulary if that is less
  //
  // Throws Error where it holds NaN.
  void advance(const at::Tensor& top);

  // Sentences whose search the last `advance` ended.
  const std::vector<int64_t>& finished() const { return finished_; }

  // Of a sentence whose search has ended, the best first: n_best, or as many as
  // there are.
  const std::vector<Hypothesis>& best(int64_t sentence) const {
    return searches_[static_cast<std::size_t>(sentence)].best;
  }

 private:
  struct Live {
    int64_t node;  // its last token; -1: none yet
    double log_probability;
  };
  struct Search {
    std::vector<Live> live;        // a row each
    std::vector<Hypothesis> best;  // finished ones, sorted by score
    int64_t n_finished = 0;
  };
  struct Node {
    int64_t token;
    int64_t before;  // -1: it is the first
  };
  struct Candidate {
    double log_probability;
    int64_t row;
    int64_t token;
  };

  std::vector<Candidate> candidates(const double* top, int64_t k,
                                    int64_t sentence, int64_t first_row) const;
  void advance_sentence(const std::vector<Candidate>& candidates,
                        int64_t sentence, int64_t first_row);
  void finish(Search& search, int64_t node, double log_probability);
  bool can_still_win(const Search& search, int64_t sentence) const;

  BeamConfig config_;
  std::vector<int64_t> longest_;  // [sentences]
  std::vector<Search> searches_;  // [sentences]
  std::vector<Node> nodes_;       // of all hypotheses
  BeamRows rows_;
  BeamRows next_;
  std::vector<int64_t> finished_;
  int64_t length_ = 0;  // tokens of every hypothesis that goes on
};

// The whole search; `step` returns the logits [rows, vocabulary] of the tokens
// after `rows`, on any device. Returns BeamSearch::best of every sentence.
using BeamStep = std::function<at::Tensor(const BeamRows& rows)>;
std::vector<std::vector<Hypothesis>> beam_search(
    const BeamConfig& config, const std::vector<int64_t>& longest,
    const BeamStep& step);

}  // namespace reformer
