#include "reformer/generate/beam_decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/device/device.h"

namespace reformer {
namespace {

constexpr const char* kOp = "beam decoder";

// [sentences, length] bool; undefined where nothing is padded.
at::Tensor mask_of(const std::vector<int64_t>& lengths, int64_t length) {
  if (std::all_of(lengths.begin(), lengths.end(),
                  [&](int64_t own) { return own == length; })) {
    return {};
  }
  const auto count = static_cast<int64_t>(lengths.size());
  const auto mask = at::zeros({count, length}, at::kBool);
  auto* real = mask.mutable_data_ptr<bool>();
  for (const int64_t own : lengths) {
    std::fill_n(real, own, true);
    real += length;
  }
  return mask;
}

void check(const at::Tensor& source, const std::vector<int64_t>& lengths) {
  require(source.dim() == 2 && source.scalar_type() == at::kLong &&
              source.is_cpu() &&
              source.size(0) == static_cast<int64_t>(lengths.size()) &&
              source.size(0) >= 1,
          kOp, ": sources must be [sentences, length] int64 on the CPU with a ",
          "length for each, got ", at::toString(source.scalar_type()), " ",
          source.sizes(), " and ", lengths.size(), " lengths");
  for (const int64_t own : lengths) {
    require(own >= 1 && own <= source.size(1), kOp,
            ": a source's length must be from 1 to ", source.size(1), ", got ",
            own);
  }
}

}  // namespace

BeamDecoder::BeamDecoder(const EncoderDecoder& model, const at::Tensor& source,
                         const std::vector<int64_t>& lengths, int64_t beam,
                         int64_t rounds)
    : model_(model), lengths_(lengths), ancestors_(model.placement().device) {
  const c10::InferenceMode no_grad;
  check(source, lengths);
  Pass pass;
  pass.seed = static_cast<uint64_t>(model.config().train.seed);
  pass.rounds = rounds;
  const auto encoded =
      model.encode(source, mask_of(lengths, source.size(1)), pass);
  const int64_t most_rows = source.size(0) * beam;
  for (const auto& block : model.decoder().blocks()) {
    caches_.emplace_back(block.attention, most_rows, pass, model.placement());
    sources_.push_back(block.cross_attention->project_source(encoded.output));
  }
}

void BeamDecoder::look_at_sources(const BeamRows& rows) {
  if (rows.sentences == sentences_) return;
  sentences_ = rows.sentences;
  const auto count = static_cast<int64_t>(sentences_.size());
  const auto numbers = at::empty({2, count}, at::kInt);
  auto* to = numbers.mutable_data_ptr<int32_t>();
  of_rows_.longest = 0;
  for (int64_t row = 0; row < count; ++row) {
    const int64_t sentence = sentences_[static_cast<std::size_t>(row)];
    const int64_t length = lengths_.at(static_cast<std::size_t>(sentence));
    to[row] = static_cast<int32_t>(sentence);
    to[count + row] = static_cast<int32_t>(length);
    of_rows_.longest = std::max(of_rows_.longest, length);
  }
  const auto there = copied_to(numbers, model_.placement().device);
  of_rows_.sentences = there[0];
  of_rows_.lengths = there[1];
}

Streams BeamDecoder::step(const BeamRows& rows) {
  const auto count = static_cast<int64_t>(rows.tokens.size());
  require(count >= 1, kOp, ": a step has at least one row");
  interruption_point();
  const auto device = model_.placement().device;
  model_.positions().require_within(position_ + 1);
  auto numbers = rows.tokens;
  numbers.insert(numbers.end(), rows.parents.begin(), rows.parents.end());
  const auto there = copied_to(numbers, device);
  const auto position =
      at::full({count}, position_, at::TensorOptions(device).dtype(at::kLong));
  ancestors_.advance(there.narrow(0, count, count));
  look_at_sources(rows);
  const auto& decoder = model_.decoder();
  auto y = decoder.begin(  // [rows, 1, d_model]
      model_.embed_at(there.narrow(0, 0, count), position).unsqueeze(1));
  decoder.for_each_branch(
      decoder.count(),
      [&](const BranchPlace& at, const AttentionLayer& layer) {
        const auto i = static_cast<std::size_t>(at.block);
        if (layer.reads_source()) {
          const auto q = layer.project(y[at.from]).q;
          layer.add_joined(attend_source(q, sources_[i], of_rows_), y[at.to]);
        } else {
          at::Tensor buckets;
          caches_[i].step(y[at.from], position, ancestors_, buckets, y[at.to]);
        }
      },
      [&](const BranchPlace& at, const FeedForward& layer) {
        layer.add_to(y[at.to], y[at.from]);
      });
  ++position_;
  return y;
}

at::Tensor BeamDecoder::logits(const BeamRows& rows) {
  const c10::InferenceMode no_grad;
  return model_.head().logits(step(rows)).squeeze(1);
}

at::Tensor BeamDecoder::top(const BeamRows& rows, int64_t k, int64_t besides) {
  const c10::InferenceMode no_grad;
  return model_.head().top_tokens(step(rows), k, besides);
}

}  // namespace reformer
