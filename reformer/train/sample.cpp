#include "reformer/train/sample.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "reformer/data/text_tokens.h"
#include "reformer/generate/completion.h"
#include "reformer/model/prediction.h"

namespace reformer {
namespace {

constexpr int64_t kByteTokens = 256;

}  // namespace

// Of offloaded blocks no step can be replayed, and each would bring them all.
std::string sample_of(Learner& learner, const Task& task) {
  const Config& config = learner.model().config();
  const int64_t longest = longest_input(config);
  const int64_t length = longest > 0
                             ? std::min(config.train.sample_length, longest)
                             : config.train.sample_length;
  if (length == 0 || config.task.name != TaskKind::kText ||
      config.train.offload) {
    return "";
  }
  const auto tokenizer = task.tokenizer();
  CompletionConfig sample;
  sample.sampler.seed = static_cast<uint64_t>(config.train.seed);
  sample.tokens = tokenizer ? tokenizer->vocabulary_size() : kByteTokens;
  const auto tokens =
      complete(learner.language_model(), at::zeros({1, 0}, at::kLong), length,
               sample, [](int64_t) { return true; });
  const auto* begin = tokens.const_data_ptr<int64_t>();
  return tokenizer ? TextTokens(tokenizer).decode({begin, size_t(length)})
                   : std::string(begin, begin + length);
}

// The first row, without its padding.
Batch first_sequence(const Batch& batch) {
  const auto first = [](const at::Tensor& x) {
    return x.defined() ? x.narrow(0, 0, 1) : x;
  };
  Batch row{first(batch.tokens), first(batch.loss_mask), /*distances=*/{},
            first(batch.source), first(batch.source_mask)};
  if (!row.source.defined()) return row;
  const auto real = [](at::Tensor& x, const at::Tensor& mask) {
    x = x.narrow(1, 0, std::max<int64_t>(1, mask.sum().item<int64_t>()));
  };
  real(row.tokens, row.loss_mask);
  if (row.source_mask.defined()) real(row.source, row.source_mask);
  row.loss_mask.reset();
  row.source_mask.reset();
  return row;
}

}  // namespace reformer
