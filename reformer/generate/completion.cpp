#include "reformer/generate/completion.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"

namespace reformer {
namespace {

// A pass over everything reads a token in about so much less time than a step.
constexpr int64_t kStepsOfAPass = 16;

int64_t size_of(const std::vector<int64_t>& text) {
  return static_cast<int64_t>(text.size());
}

CompletionConfig with_tokens(CompletionConfig config,
                             const LanguageModel& model) {
  if (config.tokens == 0) config.tokens = model.config().model.vocabulary;
  return config;
}

std::vector<std::vector<int64_t>> rows_of(const at::Tensor& tokens) {
  std::vector<std::vector<int64_t>> rows;
  const auto flat = tokens.contiguous();
  const auto* at = flat.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < flat.size(0); ++row, at += flat.size(1)) {
    rows.emplace_back(at, at + flat.size(1));
  }
  return rows;
}

}  // namespace

Completion::Completion(const LanguageModel& model,
                       std::vector<std::vector<int64_t>> texts,
                       const CompletionConfig& config)
    : model_(model),
      config_(with_tokens(config, model)),
      sampler_(config.sampler),
      texts_(std::move(texts)),
      begin_(texts_.size(), 0),
      read_(texts_.size(), 0) {
  require(!texts_.empty(), "completion: at least one text is required");
}

// The same of every text, once prompts were read.
int64_t Completion::unread() const {
  return size_of(texts_[0]) - static_cast<int64_t>(read_[0]);
}

// Whether every window has a position for each token, and one for the start.
bool Completion::fits() const {
  const auto limit = static_cast<std::size_t>(model_.positions().limit());
  for (std::size_t row = 0; row < texts_.size(); ++row) {
    if (texts_[row].size() - begin_[row] + 1 > limit) return false;
  }
  return true;
}

void Completion::move_on() {
  const auto limit = static_cast<std::size_t>(model_.positions().limit());
  for (std::size_t row = 0; row < texts_.size(); ++row) {
    const auto size = texts_[row].size();
    if (size - begin_[row] + 1 > limit) begin_[row] = size - limit / 2;
  }
  decoder_.reset();
  moved_ = true;
}

void Completion::prefill(const PrefillWatch& watch) {
  const auto batch = static_cast<int64_t>(texts_.size());
  std::vector<int64_t> lengths;
  for (std::size_t row = 0; row < texts_.size(); ++row) {
    lengths.push_back(static_cast<int64_t>(texts_[row].size() - begin_[row]));
  }
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const auto tokens = at::zeros({batch, longest}, at::kLong);
  auto* to = tokens.mutable_data_ptr<int64_t>();
  for (std::size_t row = 0; row < texts_.size(); ++row, to += longest) {
    std::copy_n(texts_[row].end() - lengths[row], lengths[row], to);
  }
  decoder_.reset();  // its caches make room
  auto fresh = std::make_unique<Decoder>(model_, batch, config_.rounds);
  logits_ = fresh->prefill(tokens, lengths, /*buckets=*/nullptr, watch);
  decoder_ = std::move(fresh);
  for (std::size_t row = 0; row < texts_.size(); ++row) {
    read_[row] = texts_[row].size();
  }
}

void Completion::step() {
  auto tokens = at::empty({static_cast<int64_t>(texts_.size())}, at::kLong);
  for (std::size_t row = 0; row < texts_.size(); ++row) {
    tokens.mutable_data_ptr<int64_t>()[row] = texts_[row][read_[row]++];
  }
  logits_ = decoder_->step(tokens);
}

void Completion::read(const PrefillWatch& watch) {
  if (!fits()) move_on();
  const bool few = unread() * kStepsOfAPass <= size_of(texts_[0]);
  if (!decoder_ || (unread() > 1 && !few)) return prefill(watch);
  while (unread() > 0) {
    check_interruption(watch.stop);
    step();
  }
}

at::Tensor Completion::next(const PrefillWatch& watch) {
  read(watch);
  const auto tokens =
      sampler_.draw(logits_.narrow(1, 0, config_.tokens), texts_);
  const auto* token = tokens.const_data_ptr<int64_t>();
  for (auto& text : texts_) text.push_back(*token++);
  return tokens;
}

void Completion::append(const std::vector<int64_t>& tokens) {
  require(texts_.size() == 1, "completion: tokens are added to one text, not ",
          texts_.size());
  texts_[0].insert(texts_[0].end(), tokens.begin(), tokens.end());
}

at::Tensor complete(const LanguageModel& model, const at::Tensor& given,
                    int64_t length, const CompletionConfig& config,
                    const std::function<bool(int64_t made)>& go_on,
                    const PrefillWatch& watch) {
  const int64_t first = given.size(1);
  assert(first < length);
  auto all = at::zeros({given.size(0), length}, at::kLong);
  all.narrow(1, 0, first).copy_(given);
  Completion completion(model, rows_of(given), config);
  completion.read(watch);
  for (int64_t at = first; at < length && go_on(at - first); ++at) {
    all.select(1, at).copy_(completion.next(watch));
  }
  return all;
}

}  // namespace reformer
