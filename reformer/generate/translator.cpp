#include "reformer/generate/translator.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>

#include <algorithm>
#include <numeric>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/generate/beam_decoder.h"

namespace reformer {
namespace {

constexpr const char* kOp = "translator";

// One drawn token of each row, as BeamSearch::advance takes the most probable.
at::Tensor drawn(const at::Tensor& logits, Sampler& sampler,
                 const std::vector<int64_t>& streams, int64_t end_token) {
  const auto x = logits.cpu().to(at::kDouble);
  const auto tokens = sampler.draw(x, /*texts=*/{}, streams).unsqueeze(1);
  const auto sums = at::logsumexp(x, {1}, /*keepdim=*/true);
  return at::cat({x.gather(1, tokens) - sums, tokens.to(at::kDouble),
                  x.narrow(1, end_token, 1) - sums},
                 1);
}

}  // namespace

Translator::Translator(const EncoderDecoder& model,
                       const TranslatorConfig& config)
    : model_(model),
      config_(config),
      packed_(std::make_shared<PackedMatrices>()) {
  const int64_t vocabulary = model.config().model.vocabulary;
  require(config.batch >= 1, kOp, ": a batch of at least 1 is required, got ",
          config.batch);
  require(config.more >= 0, kOp, ": at least 0 tokens more are required, got ",
          config.more);
  require(config.end_token >= 0 && config.end_token < vocabulary, kOp,
          ": the end token must be from 0 to ", vocabulary - 1, ", got ",
          config.end_token);
  if (config_.sampler) {
    require(config.n_best == 1, kOp, ": of drawn outputs there is one, not ",
            config.n_best);
    Sampler checked(*config_.sampler);
    config_.beam = 1;
  }
  BeamSearch checked({config_.beam, config.length_penalty, config.n_best},
                     /*longest=*/{});
}

int64_t Translator::most_source() const {
  return model_.source_positions().limit() - 1;
}

void Translator::translate_batch(
    const std::vector<std::vector<int64_t>>& sources,
    const std::vector<std::size_t>& chosen, int64_t first,
    const Done& done) const {
  std::vector<int64_t> lengths;  // with their ends
  std::vector<int64_t> longest;
  std::vector<int64_t> streams;
  for (const auto i : chosen) {
    const auto own =
        std::min(static_cast<int64_t>(sources[i].size()), most_source());
    lengths.push_back(own + 1);
    longest.push_back(
        std::min(own + config_.more, model_.positions().limit() - 1));
    streams.push_back(first + static_cast<int64_t>(i));
  }
  const int64_t width = *std::max_element(lengths.begin(), lengths.end());
  const auto tokens = at::full({static_cast<int64_t>(chosen.size()), width},
                               config_.end_token, at::kLong);
  auto* to = tokens.mutable_data_ptr<int64_t>();
  for (std::size_t row = 0; row < chosen.size(); ++row, to += width) {
    std::copy_n(sources[chosen[row]].begin(), lengths[row] - 1, to);
  }
  BeamDecoder decoder(model_, tokens, lengths, config_.beam, config_.rounds);
  BeamSearch search({config_.beam, config_.length_penalty, config_.n_best,
                     model_.start_token(), config_.end_token},
                    longest);
  const int64_t vocabulary = model_.config().model.vocabulary;
  std::optional<Sampler> sampler;
  if (config_.sampler) sampler.emplace(*config_.sampler);
  while (!search.done()) {
    const auto& rows = search.rows();
    if (sampler) {
      std::vector<int64_t> of_rows;
      for (const int64_t sentence : rows.sentences) {
        of_rows.push_back(streams[static_cast<std::size_t>(sentence)]);
      }
      search.advance(
          drawn(decoder.logits(rows), *sampler, of_rows, config_.end_token));
    } else {
      search.advance(decoder
                         .top(rows, std::min(search.wanted(), vocabulary),
                              config_.end_token)
                         .cpu());
    }
    for (const int64_t sentence : search.finished()) {
      done(chosen[static_cast<std::size_t>(sentence)], search.best(sentence));
    }
  }
}

Translations Translator::translate(
    const std::vector<std::vector<int64_t>>& sources, const Done& done,
    const std::atomic<bool>* stop, int64_t first) const {
  const Interruptible interruptible(stop);
  const PackedMatrices::Use use(*packed_);
  Translations all;
  all.best.resize(sources.size());
  const auto finish = [&](std::size_t i, const std::vector<Hypothesis>& best) {
    all.best[i] = best;
    if (!best.empty() && !sources[i].empty()) {
      all.tokens += static_cast<int64_t>(best[0].tokens.size()) + 1;
    }
    if (done) done(i, best);
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].empty()) {
      finish(i, {Hypothesis{}});
    } else {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return sources[a].size() > sources[b].size();
  });
  const auto batch = static_cast<std::size_t>(config_.batch);
  for (std::size_t at = 0; at < order.size(); at += batch) {
    const auto end = std::min(at + batch, order.size());
    translate_batch(sources,
                    {order.begin() + static_cast<long>(at),
                     order.begin() + static_cast<long>(end)},
                    first, finish);
  }
  return all;
}

}  // namespace reformer
