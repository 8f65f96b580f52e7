#include "reformer/generate/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "reformer/base/errors.h"
#include "reformer/ops/top_tokens.h"

namespace reformer {
namespace {

constexpr const char* kOp = "beam search";

}  // namespace

double length_penalty(int64_t n, double alpha) {
  return std::pow((5.0 + double(n)) / 6.0, alpha);
}

BeamSearch::BeamSearch(const BeamConfig& config, std::vector<int64_t> longest)
    : config_(config),
      longest_(std::move(longest)),
      searches_(longest_.size()) {
  require(config.beam >= 1, kOp, ": a beam of at least 1 is required, got ",
          config.beam);
  require(config.n_best >= 1 && config.n_best <= config.beam, kOp,
          ": n-best must be from 1 to the beam, ", config.beam, ", got ",
          config.n_best);
  require(std::isfinite(config.length_penalty), kOp,
          ": a finite length penalty is required, got ", config.length_penalty);
  for (const int64_t most : longest_) {
    require(most >= 0, kOp, ": a longest output of at least 0 is required, ",
            "got ", most);
  }
  for (std::size_t sentence = 0; sentence < searches_.size(); ++sentence) {
    searches_[sentence].live = {{/*node=*/-1, /*log_probability=*/0}};
  }
  const auto count = searches_.size();
  rows_.tokens.assign(count, config.start_token);
  rows_.sentences.resize(count);
  std::iota(rows_.sentences.begin(), rows_.sentences.end(), 0);
  rows_.parents = rows_.sentences;
}

std::vector<BeamSearch::Candidate> BeamSearch::candidates(
    const double* top, int64_t k, int64_t sentence, int64_t first_row) const {
  const auto& live = searches_[static_cast<std::size_t>(sentence)].live;
  const bool must_end = length_ == longest_[static_cast<std::size_t>(sentence)];
  std::vector<Candidate> found;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const int64_t row = first_row + static_cast<int64_t>(i);
    const double* of_row = top + row * (2 * k + 1);
    require(!std::isnan(of_row[0]), kOp,
            ": the logits are not finite: this model's parameters are broken");
    if (must_end) {
      found.push_back(
          {live[i].log_probability + of_row[2 * k], row, config_.end_token});
      continue;
    }
    for (int64_t j = 0; j < k; ++j) {
      if (of_row[j] == -std::numeric_limits<double>::infinity()) break;
      found.push_back({live[i].log_probability + of_row[j], row,
                       static_cast<int64_t>(of_row[k + j])});
    }
  }
  // Each row has one end token, so that these are among the first 2 * beam.
  const auto needed = std::min<std::size_t>(
      found.size(), static_cast<std::size_t>(2 * config_.beam));
  std::partial_sort(found.begin(), found.begin() + static_cast<long>(needed),
                    found.end(), [](const Candidate& a, const Candidate& b) {
                      if (a.log_probability != b.log_probability)
                        return a.log_probability > b.log_probability;
                      if (a.row != b.row) return a.row < b.row;
                      return a.token < b.token;
                    });
  found.resize(needed);
  return found;
}

void BeamSearch::finish(Search& search, int64_t node, double log_probability) {
  Hypothesis hypothesis;
  for (; node >= 0; node = nodes_[static_cast<std::size_t>(node)].before) {
    hypothesis.tokens.push_back(nodes_[static_cast<std::size_t>(node)].token);
  }
  std::reverse(hypothesis.tokens.begin(), hypothesis.tokens.end());
  hypothesis.log_probability = log_probability;
  hypothesis.score =
      log_probability / length_penalty(length_ + 1, config_.length_penalty);
  const auto place = std::upper_bound(
      search.best.begin(), search.best.end(), hypothesis,
      [](const auto& a, const auto& b) { return a.score > b.score; });
  search.best.insert(place, std::move(hypothesis));
  if (static_cast<int64_t>(search.best.size()) > config_.n_best) {
    search.best.pop_back();
  }
  ++search.n_finished;
}

// Probabilities only fall, and the penalty is monotone in the length: the best
// score that a hypothesis, of one token more by now, can come to is that of
// ending next or at the longest.
bool BeamSearch::can_still_win(const Search& search, int64_t sentence) const {
  if (search.live.empty()) return false;
  if (static_cast<int64_t>(search.best.size()) < config_.n_best) return true;
  const double best = search.live.front().log_probability;
  const int64_t most = longest_[static_cast<std::size_t>(sentence)];
  const double next = length_penalty(length_ + 2, config_.length_penalty);
  const double last = length_penalty(most + 1, config_.length_penalty);
  return std::max(best / next, best / last) > search.best.back().score;
}

void BeamSearch::advance_sentence(const std::vector<Candidate>& candidates,
                                  int64_t sentence, int64_t first_row) {
  auto& search = searches_[static_cast<std::size_t>(sentence)];
  const auto before = std::move(search.live);
  search.live.clear();
  std::vector<Candidate> going_on;
  for (std::size_t rank = 0; rank < candidates.size(); ++rank) {
    const auto& candidate = candidates[rank];
    if (candidate.token != config_.end_token) {
      if (static_cast<int64_t>(going_on.size()) < config_.beam) {
        going_on.push_back(candidate);
      }
    } else if (static_cast<int64_t>(rank) < config_.beam) {
      const auto& ended =
          before[static_cast<std::size_t>(candidate.row - first_row)];
      finish(search, ended.node, candidate.log_probability);
    }
  }
  if (search.n_finished >= config_.beam) going_on.clear();
  for (const auto& candidate : going_on) {
    const auto& parent =
        before[static_cast<std::size_t>(candidate.row - first_row)];
    search.live.push_back(
        {static_cast<int64_t>(nodes_.size()), candidate.log_probability});
    nodes_.push_back({candidate.token, parent.node});
    next_.tokens.push_back(candidate.token);
    next_.parents.push_back(candidate.row);
    next_.sentences.push_back(sentence);
  }
}

void BeamSearch::advance(const at::Tensor& top) {
  const auto count = static_cast<int64_t>(rows_.tokens.size());
  require(top.dim() == 2 && top.size(0) == count && top.size(1) >= 3 &&
              top.size(1) % 2 == 1 && top.scalar_type() == at::kDouble &&
              top.is_cpu() && top.is_contiguous(),
          kOp, ": the top tokens must be [", count,
          ", 2 k + 1] float64 on the CPU, got ",
          at::toString(top.scalar_type()), " ", top.sizes());
  const int64_t k = top.size(1) / 2;
  const auto* numbers = top.const_data_ptr<double>();
  next_ = {};
  finished_.clear();
  for (int64_t row = 0; row < count;) {
    const int64_t sentence = rows_.sentences[static_cast<std::size_t>(row)];
    auto& search = searches_[static_cast<std::size_t>(sentence)];
    const auto n_rows = static_cast<int64_t>(search.live.size());
    const auto kept = next_.tokens.size();
    advance_sentence(candidates(numbers, k, sentence, row), sentence, row);
    if (!can_still_win(search, sentence)) {
      for (auto* of : {&next_.tokens, &next_.parents, &next_.sentences}) {
        of->resize(kept);
      }
      search.live.clear();
      finished_.push_back(sentence);
    }
    row += n_rows;
  }
  ++length_;
  std::swap(rows_, next_);
}

std::vector<std::vector<Hypothesis>> beam_search(
    const BeamConfig& config, const std::vector<int64_t>& longest,
    const BeamStep& step) {
  BeamSearch search(config, longest);
  while (!search.done()) {
    const auto logits = step(search.rows());
    search.advance(top_tokens(logits, std::min(search.wanted(), logits.size(1)),
                              config.end_token)
                       .cpu());
  }
  std::vector<std::vector<Hypothesis>> all;
  for (std::size_t i = 0; i < longest.size(); ++i) {
    all.push_back(search.best(static_cast<int64_t>(i)));
  }
  return all;
}

}  // namespace reformer
