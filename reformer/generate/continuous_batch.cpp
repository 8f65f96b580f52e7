#include "reformer/generate/continuous_batch.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <span>

#include "reformer/base/errors.h"
#include "reformer/base/parallel.h"

namespace reformer {
namespace {

// Texts from which on several threads draw: each takes some microseconds.
constexpr int64_t kDrawnTogether = 16;

// [1, length]
at::Tensor as_row(const std::vector<int64_t>& tokens) {
  auto row = at::empty({1, std::ssize(tokens)}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), row.mutable_data_ptr<int64_t>());
  return row;
}

void tell_probabilities(std::span<const double> logits, int64_t alternatives,
                        DrawnToken& drawn) {
  auto all = candidates(logits, SamplerConfig());
  for (const auto& candidate : all) {
    if (candidate.token == drawn.token) {
      drawn.probability = candidate.probability;
    }
  }
  all.resize(std::min(all.size(), static_cast<std::size_t>(alternatives)));
  drawn.alternatives = std::move(all);
}

// The next token of a text, which it joins.
DrawnToken draw(const JoiningText& given, std::span<const double> logits,
                std::vector<int64_t>& tokens, Sampler& sampler) {
  DrawnToken drawn;
  std::vector<double> own(logits.begin(),
                          logits.end());  // a penalty's to lower
  drawn.token = sampler.draw(own, tokens, given.row);
  tokens.push_back(drawn.token);
  if (given.alternatives >= 0) {
    tell_probabilities(logits, given.alternatives, drawn);
  }
  return drawn;
}

// [rows, tokens] on the CPU: one small copy, which waits for a GPU
at::Tensor exact_logits(const at::Tensor& logits, int64_t tokens) {
  return logits.narrow(1, 0, tokens).cpu().to(at::kDouble).contiguous();
}

std::span<const double> row_of(const at::Tensor& exact, int64_t row) {
  return {exact.const_data_ptr<double>() + row * exact.size(1),
          static_cast<std::size_t>(exact.size(1))};
}

}  // namespace

ContinuousBatch::ContinuousBatch(const LanguageModel& model, int64_t most,
                                 int64_t rounds, int64_t tokens,
                                 std::shared_ptr<PackedMatrices> packed)
    : model_(model),
      most_(most),
      rounds_(rounds),
      tokens_(tokens > 0 ? tokens : model.config().model.vocabulary),
      packed_(packed ? std::move(packed) : std::make_shared<PackedMatrices>()),
      decoder_(model, Decoder::Joining{most}, rounds) {}

ContinuousBatch::ReadText ContinuousBatch::read(
    const JoiningText& text, const PrefillWatch& watch) const {
  ReadText read{text,
                Decoder(model_, 1, rounds_),
                text.prompt,
                Sampler(text.sampler),
                {}};
  read.given.prompt.clear();
  const PackedMatrices::Use packed(packed_.get());
  const auto logits = exact_logits(
      read.decoder.prefill(as_row(text.prompt), {std::ssize(text.prompt)},
                           /*buckets=*/nullptr, watch),
      tokens_);
  read.first = draw(read.given, row_of(logits, 0), read.tokens, read.sampler);
  return read;
}

void ContinuousBatch::require_room() const {
  require(size() < most_, "continuous batch: ", most_,
          " texts go on together, there is no room for another");
}

DrawnToken ContinuousBatch::join(ReadText text) {
  require_room();
  texts_.reserve(texts_.size() + 1);
  decoder_.join(std::move(text.decoder));
  text.first.text = joined_++;
  texts_.push_back({text.first.text, std::move(text.tokens), text.sampler,
                    std::move(text.given)});
  return std::move(text.first);
}

DrawnToken ContinuousBatch::join(const JoiningText& text,
                                 const PrefillWatch& watch) {
  require_room();
  return join(read(text, watch));
}

std::vector<DrawnToken> ContinuousBatch::next() {
  std::vector<DrawnToken> drawn;
  if (texts_.empty()) return drawn;
  auto last = at::empty({size()}, at::kLong);
  for (int64_t row = 0; row < size(); ++row) {
    last.mutable_data_ptr<int64_t>()[row] = texts_[row].tokens.back();
  }
  // A single row's matmuls read the matrices once, packed or not.
  const auto logits = [&] {
    const PackedMatrices::Use packed(size() > 1 ? packed_.get() : nullptr);
    return exact_logits(decoder_.step(last), tokens_);
  }();
  drawn.resize(texts_.size());
  parallel_tasks_if(size() >= kDrawnTogether, size(), [&](int64_t row) {
    auto& text = texts_[row];
    drawn[row] =
        draw(text.given, row_of(logits, row), text.tokens, text.sampler);
    drawn[row].text = text.number;
  });
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
