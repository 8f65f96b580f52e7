#include "reformer/generate/continuous_batch.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <span>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

// [1, length]
at::Tensor as_row(const std::vector<int64_t>& tokens) {
  auto row = at::empty({1, std::ssize(tokens)}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), row.mutable_data_ptr<int64_t>());
  return row;
}

// logits  [1, tokens] on the CPU
void tell_probabilities(const at::Tensor& logits, int64_t alternatives,
                        DrawnToken& drawn) {
  const auto exact = logits.to(at::kDouble).contiguous();
  auto all = candidates(
      {exact.const_data_ptr<double>(), static_cast<std::size_t>(exact.numel())},
      SamplerConfig());
  for (const auto& candidate : all) {
    if (candidate.token == drawn.token) {
      drawn.probability = candidate.probability;
    }
  }
  all.resize(std::min(all.size(), static_cast<std::size_t>(alternatives)));
  drawn.alternatives = std::move(all);
}

}  // namespace

ContinuousBatch::ContinuousBatch(const LanguageModel& model, int64_t most,
                                 int64_t rounds, int64_t tokens)
    : model_(model),
      most_(most),
      rounds_(rounds),
      tokens_(tokens > 0 ? tokens : model.config().model.vocabulary),
      decoder_(model, Decoder::Joining{most}, rounds) {}

// logits  [1, tokens] on the CPU
DrawnToken ContinuousBatch::draw(Text& text, const at::Tensor& logits) const {
  DrawnToken drawn;
  drawn.text = text.number;
  const bool penalty = text.given.sampler.repetition_penalty != 1;
  const auto before = penalty ? std::vector<std::vector<int64_t>>{text.tokens}
                              : std::vector<std::vector<int64_t>>();
  drawn.token =
      text.sampler.draw(logits, before, {text.given.row}).item<int64_t>();
  text.tokens.push_back(drawn.token);
  if (text.given.alternatives >= 0) {
    tell_probabilities(logits, text.given.alternatives, drawn);
  }
  return drawn;
}

DrawnToken ContinuousBatch::join(const JoiningText& text,
                                 const PrefillWatch& watch) {
  require(size() < most_, "continuous batch: ", most_,
          " texts go on together, there is no room for another");
  Text joined{joined_, text.prompt, Sampler(text.sampler), text};
  joined.given.prompt.clear();
  Decoder alone(model_, 1, rounds_);
  const auto logits =
      alone
          .prefill(as_row(text.prompt), {std::ssize(text.prompt)},
                   /*buckets=*/nullptr, watch)
          .narrow(1, 0, tokens_)
          .cpu();
  auto drawn = draw(joined, logits);
  texts_.reserve(texts_.size() + 1);
  decoder_.join(std::move(alone));
  texts_.push_back(std::move(joined));
  ++joined_;
  return drawn;
}

std::vector<DrawnToken> ContinuousBatch::next() {
  std::vector<DrawnToken> drawn;
  if (texts_.empty()) return drawn;
  auto last = at::empty({size()}, at::kLong);
  for (int64_t row = 0; row < size(); ++row) {
    last.mutable_data_ptr<int64_t>()[row] = texts_[row].tokens.back();
  }
  const auto logits = decoder_.step(last).narrow(1, 0, tokens_).cpu();
  for (int64_t row = 0; row < size(); ++row) {
    drawn.push_back(draw(texts_[row], logits.narrow(0, row, 1)));
  }
  return drawn;
}

void ContinuousBatch::leave(int64_t text) {
  const auto at = std::find_if(texts_.begin(), texts_.end(),
                               [&](const Text& t) { return t.number == text; });
  require(at != texts_.end(), "continuous batch: text ", text, " is not there");
  decoder_.leave(at - texts_.begin());
  if (at != texts_.end() - 1) *at = std::move(texts_.back());
  texts_.pop_back();
}

}  // namespace reformer
