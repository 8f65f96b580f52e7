#include "reformer/generate/decoder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <bit>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/device/device.h"
#include "reformer/model/parts.h"
#include "reformer/ops/packed_matrices.h"

namespace reformer {
namespace {

constexpr const char* kOp = "decoder";

// Fewer positions are read before anybody has stopped them, and waiting for a
// GPU between the layers would cost more than the layers.
constexpr int64_t kLong = 4096;

// Positions of a row from which on matrices are packed for them, by whoever
// reads: a prompt's bits must not depend on what was packed before. 3 layers
// 512/2048 are packed in 10 ms, and read 520 positions in 50 where 500 take 75
// without.
constexpr int64_t kPackedPositions = 512;

// x += FeedForward(y), a part of the positions at a time; done(share) after
// each.
template <class Done>
void add_feed_forward(const FeedForward& layer, const at::Tensor& y,
                      const at::Tensor& x, const Done& done) {
  const int64_t length = y.size(1);
  if (length == 1) return layer.add_to(x, y);
  for_each_part(length, layer.chunk(y.size(0)), [&](int64_t at, int64_t n) {
    layer.add_to(x.narrow(1, at, n), y.narrow(1, at, n));
    done(double(at + n) / double(length));
  });
}

// The last position of each row, [batch, 1, d_model].
at::Tensor last_of(const at::Tensor& x, const std::vector<int64_t>& lengths) {
  std::vector<at::Tensor> rows;
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    rows.push_back(x.narrow(0, static_cast<int64_t>(row), 1)
                       .narrow(1, lengths[row] - 1, 1));
  }
  return at::cat(rows);
}

}  // namespace

Decoder::Decoder(const LanguageModel& model, int64_t batch, int64_t rounds)
    : model_(model), lengths_(std::max<int64_t>(batch, 0), 0) {
  require(batch >= 1, kOp, ": a batch of at least 1 is required, got ", batch);
  require(rounds >= 0, kOp, ": rounds of at least 0 are required, got ",
          rounds);
  pass_.seed = static_cast<uint64_t>(model.config().train.seed);
  pass_.rounds = rounds;
  for (const auto& block : model.stack().blocks()) {
    caches_.emplace_back(block.attention, batch, pass_, model.placement());
  }
}

Decoder::Decoder(const LanguageModel& model, Joining rows, int64_t rounds)
    : Decoder(model, rows.most, rounds) {
  const auto options =
      at::TensorOptions(model.placement().device).dtype(at::kLong);
  joining_ = rows.most;
  lengths_.clear();
  next_ = at::zeros({rows.most}, options);
  adds_ = at::zeros({rows.most}, options);
  recent_ = at::zeros({rows.most, model.context()}, options);
  for (auto& cache : caches_) {
    for (int64_t row = 0; row < rows.most; ++row) cache.clear_row(row);
    cache.use_rows(0);
  }
}

bool Decoder::can_be_captured() const {
  return std::all_of(caches_.begin(), caches_.end(),
                     [](const auto& cache) { return cache.can_be_captured(); });
}

// On a GPU a power of two, so that few captures serve any number of rows.
int64_t Decoder::computed_rows() const {
  if (joining_ == 0 || model_.placement().device.is_cpu() ||
      !can_be_captured()) {
    return rows();
  }
  const auto power = std::bit_ceil(static_cast<uint64_t>(rows()));
  return std::min(static_cast<int64_t>(power), joining_);
}

void Decoder::put_row(int64_t row, const at::Tensor& next,
                      const at::Tensor& recent, int64_t adds) {
  next_.narrow(0, row, 1).copy_(next);
  recent_.narrow(0, row, 1).copy_(recent);
  adds_.narrow(0, row, 1).fill_(adds);
}

void Decoder::join(Decoder&& one) {
  const at::NoGradGuard no_grad;
  require(rows() < joining_, kOp, ": ", joining_,
          " rows may be there at once, and are");
  require(one.joining_ == 0 && one.lengths_.size() == 1 &&
              one.lengths_[0] > 0 && &one.model_ == &model_ &&
              one.pass_.rounds == pass_.rounds,
          kOp,
          ": a row that joins is a prompt that was read alone, by the same "
          "model and rounds");
  const int64_t row = rows();
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    caches_[i].take_row(row, one.caches_[i]);
  }
  put_row(row, one.next_, one.recent_, /*adds=*/1);
  lengths_.push_back(one.lengths_[0]);
}

void Decoder::leave(int64_t row) {
  const at::NoGradGuard no_grad;
  require(joining_ > 0 && row >= 0 && row < rows(), kOp, ": there is no row ",
          row, " that could leave");
  const int64_t last = rows() - 1;
  for (auto& cache : caches_) {
    cache.clear_row(row);
    cache.move_row(last, row);
  }
  put_row(row, next_.narrow(0, last, 1), recent_.narrow(0, last, 1), 1);
  put_row(last, at::zeros_like(next_.narrow(0, last, 1)),
          at::zeros_like(recent_.narrow(0, last, 1)), /*adds=*/0);
  lengths_[static_cast<std::size_t>(row)] =
      lengths_[static_cast<std::size_t>(last)];
  lengths_.pop_back();
}

void Decoder::check_tokens(const at::Tensor& tokens) const {
  // On the CPU: looking at a GPU's would wait for all that it has to do.
  require(tokens.scalar_type() == at::kLong && tokens.is_cpu() &&
              tokens.dim() >= 1 &&
              tokens.size(0) == static_cast<int64_t>(lengths_.size()),
          kOp, ": tokens must be int64 on the CPU, a row each of ",
          lengths_.size(), ", got ", at::toString(tokens.scalar_type()), " ",
          tokens.sizes(), " on ", tokens.device().str());
  if (tokens.numel() == 0) return;
  const int64_t vocabulary = model_.config().model.vocabulary;
  const int64_t least = tokens.min().item<int64_t>();
  const int64_t most = tokens.max().item<int64_t>();
  require(least >= 0 && most < vocabulary, kOp, ": tokens must be from 0 to ",
          vocabulary - 1, ", got ", least < 0 ? least : most);
}

void Decoder::check_buckets(Buckets* buckets, int64_t length) const {
  if (buckets == nullptr) return;
  buckets->resize(caches_.size());
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    caches_[i].check_given((*buckets)[i], length);
  }
}

// All layers; add_attention(cache, x, buckets, y) adds a layer's attention to
// y; done(n) is told how many layers are done, attention as half of one. Owns
// its streams.
template <class AddAttention, class Done>
Streams Decoder::run(Streams y, const AddAttention& add_attention,
                     const Done& done, Buckets* buckets) {
  const auto& stack = model_.stack();
  Buckets unnamed(caches_.size());
  auto& used = buckets ? *buckets : unnamed;
  stack.for_each_branch(
      stack.count(),
      [&](const BranchPlace& at, const AttentionLayer&) {
        const auto i = static_cast<std::size_t>(at.block);
        add_attention(caches_[i], y[at.from], used[i], y[at.to]);
        done(double(at.block) + 0.5);
      },
      [&](const BranchPlace& at, const FeedForward& layer) {
        add_feed_forward(layer, y[at.from], y[at.to], [&](double share) {
          done(double(at.block) + 0.5 + share / 2);
        });
      });
  return y;
}

// A part of the positions at a time: memory that is new takes longer to write
// than the embedding to compute.
Streams Decoder::embed(const at::Tensor& inputs) const {
  constexpr int64_t kPart = 16384;
  const auto& stack = model_.stack();
  const int64_t length = inputs.size(1);
  if (length <= kPart) return stack.begin(model_.embed(inputs, 0, length));
  Streams x;
  for_each_part(length, kPart, [&](int64_t at, int64_t n) {
    interruption_point();
    const auto part = model_.embed(inputs, at, n);
    if (at == 0) {
      x.x1 = at::empty({inputs.size(0), length, part.size(2)}, part.options());
      x.x2 = stack.two_streams() ? at::empty_like(x.x1) : x.x1;
    }
    x.x1.narrow(1, at, n).copy_(part);
    if (stack.two_streams()) x.x2.narrow(1, at, n).copy_(part);
  });
  return x;
}

// Of each row, [batch, context] on the CPU.
at::Tensor Decoder::last_inputs(const at::Tensor& inputs,
                                const std::vector<int64_t>& counts) const {
  const int64_t context = model_.context();
  const auto padded = model_.with_context(inputs, context);
  auto last = at::empty({inputs.size(0), context}, at::kLong);
  for (std::size_t row = 0; row < counts.size(); ++row) {
    const auto at = static_cast<int64_t>(row);
    last[at].copy_(padded[at].narrow(0, counts[row], context));
  }
  return last;
}

at::Tensor Decoder::prefill(const at::Tensor& tokens,
                            const std::vector<int64_t>& lengths,
                            Buckets* buckets, const PrefillWatch& watch) {
  const at::NoGradGuard no_grad;
  auto* const kept = PackedMatrices::in_use();
  const std::function<void()> turn = [&] {
    const PackedMatrices::Use theirs(kept);
    watch.turn();
  };
  const Interruptible interruptible(watch.stop, watch.turn ? &turn : nullptr);
  const auto batch = static_cast<int64_t>(lengths_.size());
  const auto device = model_.placement().device;
  check_tokens(tokens);
  require(tokens.dim() == 2 && lengths.size() == lengths_.size(), kOp,
          ": prompts must be [batch, length] with a length for each row, got ",
          tokens.sizes(), " and ", lengths.size(), " lengths");
  require(joining_ == 0 && lengths_[0] == 0, kOp,
          ": prompts are read once, before any step");
  std::vector<int64_t> positions;  // of each row, with the start token
  for (const int64_t length : lengths) {
    require(length >= 0 && length <= tokens.size(1), kOp,
            ": a prompt's length must be from 0 to ", tokens.size(1), ", got ",
            length);
    positions.push_back(length + 1);
  }
  const int64_t most = *std::max_element(positions.begin(), positions.end());
  check_buckets(buckets, most);
  PackedMatrices own;
  const bool packs = device.is_cpu() && most >= kPackedPositions;
  const PackedMatrices::Use packed(!packs            ? nullptr
                                   : kept != nullptr ? kept
                                                     : &own);
  const auto start = at::full({batch, 1}, model_.start_token(), at::kLong);
  const auto inputs = at::cat({start, tokens.narrow(1, 0, most - 1)}, 1);
  const bool watched = most >= kLong && (watch.stop || watch.progress);
  const auto done = [&](double layers) {
    if (watched) synchronize(device);
    interruption_point();
    if (watch.progress) watch.progress(layers / double(caches_.size()));
  };
  // Behind the end of a row others' tokens would do as well: nothing sees what
  // comes after it.
  const auto there = copied_to(inputs, device);
  const auto ngrams = model_.with_ngrams({}, there).ngrams;
  const auto y = run(
      embed(there),
      [&](AttentionCache& cache, const at::Tensor& x, at::Tensor& used,
          const at::Tensor& y) { cache.read(x, positions, ngrams, used, y); },
      done, buckets);
  lengths_ = positions;
  next_ = copied_to(positions, device);
  adds_ = at::ones_like(next_);
  recent_ = copied_to(last_inputs(inputs, positions), device);
  return model_.head()
      .logits({last_of(y.x1, positions), last_of(y.x2, positions)})
      .squeeze(1);
}

// The last inputs of each row with the new one, [batch, context + 1].
at::Tensor Decoder::recent_with(const at::Tensor& inputs) {
  const auto last = inputs.unsqueeze(1);
  if (recent_.size(1) == 0) return last;
  const auto before = recent_.narrow(0, 0, inputs.size(0));
  const auto recent = at::cat({before, last}, 1);
  before.copy_(recent.narrow(1, 1, recent_.size(1)));
  return recent;
}

// On the device alone: this may be captured, and is then not called again.
at::Tensor Decoder::compute_step(const at::Tensor& inputs, Buckets* buckets) {
  const auto next = next_.narrow(0, 0, inputs.size(0));
  const auto recent = recent_with(inputs);
  const auto ngrams = model_.next_ngrams(recent);
  const auto y = run(
      model_.stack().begin(  // [batch, 1, d_model]
          model_.embed_next(recent, next).unsqueeze(1)),
      [&](AttentionCache& cache, const at::Tensor& x, at::Tensor& used,
          const at::Tensor& sum) { cache.step(x, next, ngrams, used, sum); },
      [](double) {}, buckets);
  next.add_(adds_.narrow(0, 0, inputs.size(0)));
  return model_.head().logits(y).squeeze(1);
}

at::Tensor Decoder::step(const at::Tensor& tokens, Buckets* buckets) {
  // Without gradients, and past LibTorch's bookkeeping for them: of a step that
  // a GPU does not replay, it is the host's part that takes longest.
  const c10::InferenceMode no_grad;
  check_tokens(tokens);
  require(tokens.dim() == 1, kOp, ": a step takes tokens [batch], got sizes ",
          tokens.sizes());
  require(rows() > 0 && lengths_[0] > 0, kOp,
          ": prompts are read before the first step");
  model_.positions().require_within(
      *std::max_element(lengths_.begin(), lengths_.end()) + 1);
  require(joining_ == 0 || buckets == nullptr, kOp,
          ": rows that join and leave are hashed");
  check_buckets(buckets, 1);
  const int64_t computed = computed_rows();
  bool moved = false;
  for (auto& cache : caches_) {
    if (joining_ > 0) cache.use_rows(computed);
    moved = cache.extend(rows()) || moved;
  }
  if (moved) {
    for (auto& [n, step] : captured_) step.forget();
    captured_now_ = false;
  }
  for (auto& length : lengths_) ++length;
  if (buckets != nullptr || !can_be_captured()) {
    return compute_step(copied_to(tokens, model_.placement().device), buckets);
  }
  auto inputs = tokens;
  if (computed > rows()) {
    inputs = at::zeros({computed}, at::kLong);
    inputs.narrow(0, 0, rows()).copy_(tokens);
  }
  auto& step =
      captured_.try_emplace(computed, model_.placement().device).first->second;
  const auto logits = step.take(inputs, [this](const at::Tensor& of) {
    return compute_step(of, /*buckets=*/nullptr);
  });
  captured_now_ = step.captured();
  return logits.narrow(0, 0, rows());
}

}  // namespace reformer
