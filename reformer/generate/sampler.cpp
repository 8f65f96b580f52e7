#include "reformer/generate/sampler.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "reformer/base/errors.h"
#include "reformer/base/philox.h"

namespace reformer {
namespace {

constexpr const char* kOp = "sampler";

// Relative to the most probable token's: 1 for that one.
double weight_of(double logit, double best, double temperature) {
  if (temperature == 0) return logit == best ? 1 : 0;
  return std::exp((logit - best) / temperature);
}

double sum_of(const std::vector<Candidate>& from) {
  double sum = 0;
  for (const auto& candidate : from) sum += candidate.probability;
  return sum;
}

void normalise(std::vector<Candidate>& of) {
  const double sum = sum_of(of);
  for (auto& candidate : of) candidate.probability /= sum;
}

void keep_top_p(std::vector<Candidate>& of, double top_p) {
  double mass = 0;
  std::size_t kept = 0;
  while (kept < of.size() && mass < top_p) mass += of[kept++].probability;
  of.resize(kept);
  normalise(of);
}

int64_t token_at(const std::vector<Candidate>& from, double u) {
  for (const auto& candidate : from) {
    if (u < candidate.probability) return candidate.token;
    u -= candidate.probability;
  }
  return from.back().token;  // the sum of probabilities was rounded down
}

}  // namespace

std::vector<Candidate> candidates(std::span<const double> logits,
                                  const SamplerConfig& config) {
  double best = -std::numeric_limits<double>::infinity();
  bool sound = true;
  for (const double logit : logits) {
    sound = sound && logit < std::numeric_limits<double>::infinity();
    best = std::max(best, logit);
  }
  require(sound && std::isfinite(best), kOp,
          ": the logits are not finite: this model's parameters are broken");
  std::vector<Candidate> all;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    all.push_back({static_cast<int64_t>(token),
                   weight_of(logits[token], best, config.temperature)});
  }
  const int64_t top_k = config.temperature == 0 ? 1 : config.top_k;
  const auto kept =
      top_k > 0 ? std::min<std::size_t>(all.size(), top_k) : all.size();
  const auto comes_first = [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability
                                          : a.token < b.token;
  };
  if (kept < all.size()) {
    std::nth_element(all.begin(), all.begin() + static_cast<long>(kept),
                     all.end(), comes_first);
  }
  all.resize(kept);
  std::sort(all.begin(), all.end(), comes_first);
  normalise(all);
  if (config.top_p < 1) keep_top_p(all, config.top_p);
  return all;
}

void penalise_repetition(std::span<double> logits,
                         std::span<const int64_t> text,
                         const SamplerConfig& config) {
  if (config.repetition_penalty == 1) return;
  const auto window = static_cast<std::size_t>(config.repetition_window);
  if (window > 0) text = text.last(std::min(window, text.size()));
  const auto count = static_cast<int64_t>(logits.size());
  for (const int64_t token : std::set<int64_t>(text.begin(), text.end())) {
    if (token < 0 || token >= count) continue;
    double& logit = logits[static_cast<std::size_t>(token)];
    logit = logit > 0 ? logit / config.repetition_penalty
                      : logit * config.repetition_penalty;
  }
}

Sampler::Sampler(const SamplerConfig& config) : config_(config) {
  require(config.temperature >= 0 && std::isfinite(config.temperature), kOp,
          ": a temperature of at least 0 is required, got ",
          config.temperature);
  require(config.top_k >= 0, kOp, ": a top-k of at least 0 is required, got ",
          config.top_k);
  require(config.top_p > 0 && config.top_p <= 1, kOp,
          ": a top-p above 0 and up to 1 is required, got ", config.top_p);
  require(
      config.repetition_penalty > 0 && std::isfinite(config.repetition_penalty),
      kOp, ": a repetition penalty above 0 is required, got ",
      config.repetition_penalty);
  require(config.repetition_window >= 0, kOp,
          ": a repetition window of at least 0 is required, got ",
          config.repetition_window);
}

double Sampler::uniform(int64_t row) const {
  const PhiloxKey key{static_cast<uint32_t>(config_.seed),
                      static_cast<uint32_t>(config_.seed >> 32)};
  const auto bits = philox(
      key, {static_cast<uint32_t>(drawn_), static_cast<uint32_t>(drawn_ >> 32),
            static_cast<uint32_t>(row), /*purpose: sampling=*/0x53616d70});
  const uint64_t wide = uint64_t{bits[0]} << 32 | bits[1];
  return double(wide >> 11) * 0x1p-53;  // [0, 1)
}

int64_t Sampler::draw(std::span<double> logits, std::span<const int64_t> text,
                      int64_t row) {
  penalise_repetition(logits, text, config_);
  const int64_t token = token_at(candidates(logits, config_), uniform(row));
  ++drawn_;
  return token;
}

at::Tensor Sampler::draw(const at::Tensor& logits,
                         const std::vector<std::vector<int64_t>>& texts,
                         const std::vector<int64_t>& rows) {
  require(logits.dim() == 2 && logits.size(1) >= 1, kOp,
          ": logits must be [batch, vocabulary], got sizes ", logits.sizes());
  require(texts.empty() || static_cast<int64_t>(texts.size()) == logits.size(0),
          kOp, ": a text for each of ", logits.size(0), " rows is required, ",
          "got ", texts.size());
  require(rows.empty() || static_cast<int64_t>(rows.size()) == logits.size(0),
          kOp, ": a number of each of ", logits.size(0), " rows is required, ",
          "got ", rows.size());
  auto exact = logits.cpu().to(at::kDouble).contiguous();
  if (exact.is_alias_of(logits)) exact = exact.clone();  // the caller's stay
  const auto vocabulary = static_cast<std::size_t>(exact.size(1));
  auto tokens = at::empty({exact.size(0)}, at::kLong);
  for (int64_t row = 0; row < exact.size(0); ++row) {
    const std::span<double> of_row{
        exact.mutable_data_ptr<double>() + row * exact.size(1), vocabulary};
    if (!texts.empty()) penalise_repetition(of_row, texts[row], config_);
    tokens.mutable_data_ptr<int64_t>()[row] = token_at(
        candidates(of_row, config_), uniform(rows.empty() ? row : rows[row]));
  }
  ++drawn_;
  return tokens;
}

}  // namespace reformer
