#include "reformer/model/attention_layer.h"

#include <algorithm>
#include <numeric>

#include "reformer/config/bucket_count.h"
#include "reformer/model/ngram_buckets.h"
#include "reformer/ops/full_attention.h"
#include "reformer/ops/linear.h"
#include "reformer/ops/local_attention.h"
#include "reformer/ops/lsh_attention.h"
#include "reformer/ops/lsh_rotations.h"
#include "reformer/ops/short_convolution.h"

namespace reformer {
namespace {

Projected convolved_by(const std::vector<at::Tensor>& filters,
                       const Projected& projected) {
  if (filters.empty()) return projected;
  const auto& [q, k, v] = projected;
  return {short_convolution(q, filters[0]),
          k.defined() ? short_convolution(k, filters[2]) : k,
          short_convolution(v, filters[1])};
}

}  // namespace

AttentionLayer::AttentionLayer(const Config& config,
                               const AttentionPlace& place,
                               ParameterStore& store)
    : kind_(place.kind),
      reach_(place.reach),
      block_(place.block),
      branch_(place.branch),
      heads_(config.model.heads),
      d_head_(head_size(config.model)),
      exchange_(store.placement().sequence, heads_),
      // What came next is known of the past alone.
      successor_heads_(has_own_keys(kind_) || reach_ != AttentionReach::kPast
                           ? 0
                           : exchange_.own_of_first(
                                 reformer::successor_heads(config.model))),
      hashed_heads_(exchange_.own_of_first(reach_ == AttentionReach::kPast
                                               ? reformer::hashed_heads(config)
                                               : heads_)),
      near_window_(config.lsh.local_window),
      // Positions of two sequences are no distance apart.
      rotary_{successor_heads_,
              reads_source() ? 0 : rotary_pairs(config.model)},
      dropout_(config.model.dropout),
      lsh_(config.lsh),
      local_{local_chunk_length(config),
             kind_ == AttentionKind::kLocalSeparateQk ? Window::kChunk
                                                      : Window(lsh_.window),
             reach_ == AttentionReach::kPast},
      huggingface_(huggingface_lsh(config)),
      gradient_(config.train.deterministic ? GradientSums::kDeterministic
                                           : GradientSums::kNondeterministic),
      compute_(store.placement().compute) {
  // Of all heads: those of one rank may hash, all of them.
  if (reach_ == AttentionReach::kPast &&
      reformer::hashed_heads(config) < heads_) {
    lsh_.local_window = local_window_of_hashed(config);
  }
  // The number of buckets belongs to the model, not to an input's length: a
  // prefix must hash as the whole does.
  if (kind_ == AttentionKind::kLshHuggingface) {
    lsh_.n_buckets = huggingface_.n_buckets();
  } else if (lsh_.n_buckets == 0) {
    lsh_.n_buckets =
        default_bucket_count(config.train.length, lsh_.chunk_length);
  }
  lsh_.causal = reach_ == AttentionReach::kPast;
  const std::string& name = place.name;
  const int64_t d_model = config.model.d_model;
  const int64_t width = heads_ * d_head_;
  norm_ = {store.constant(name + "norm.weight", {d_model}, 1),
           store.constant(name + "norm.bias", {d_model}, 0),
           config.model.norm_epsilon};
  if (has_own_keys(kind_)) {
    qk_ = store.glorot(name + "q.weight", width, d_model);
    k_ = store.glorot(name + "k.weight", width, d_model);
  } else {
    qk_ = store.glorot(name + "qk.weight", width, d_model);
  }
  v_ = store.glorot(name + "v.weight", width, d_model);
  const int64_t taps = convolution_taps(config.model);
  const char* const queries = k_.defined() ? "q" : "qk";
  for (const char* of : {queries, "v", "k"}) {
    if (taps == 0 || (*of == 'k' && !k_.defined())) break;
    filters_.push_back(
        store.normal(name + of + ".filter", {taps * width}, 0.3));
  }
  output_ = store.glorot(name + "output.weight", d_model, width);
}

// One position is the same numbers in the same order either way: a call less
// of the dozens that a token takes.
at::Tensor AttentionLayer::split_heads(const at::Tensor& x) const {
  const int64_t heads = x.size(2) / d_head_;
  if (x.size(1) == 1) return x.view({x.size(0), heads, 1, d_head_});
  return x.view({x.size(0), x.size(1), heads, d_head_})
      .transpose(1, 2);  // [batch, heads, length, d_head]
}

std::vector<at::Tensor> AttentionLayer::projections() const {
  std::vector<at::Tensor> matrices = {qk_, v_};
  if (k_.defined()) matrices.push_back(k_);
  return matrices;
}

// Of [taps * heads * d_head], [taps, own heads, d_head].
at::Tensor AttentionLayer::own_of_filter(const at::Tensor& filter) const {
  return filter.view({-1, heads_, d_head_})
      .narrow(1, exchange_.first_head(), exchange_.own_heads());
}

std::vector<at::Tensor> AttentionLayer::filters() const {
  std::vector<at::Tensor> own;
  for (const auto& filter : filters_) {
    own.push_back(own_of_filter(filter));
  }
  return own;
}

// What the matrix i of projections() is multiplied with: of cross-attention v
// and k come from the source.
const at::Tensor& AttentionLayer::projected_from(size_t i,
                                                 const at::Tensor& normed,
                                                 const Pass& pass) const {
  return reads_source() && i > 0 ? pass.source.output : normed;
}

// Of [batch, length, heads * d_head] each, in the order of projections().
Projected AttentionLayer::split(const std::vector<at::Tensor>& rows) const {
  return {split_heads(rows[0]),
          k_.defined() ? split_heads(rows[2]) : at::Tensor(),
          split_heads(rows[1])};
}

// By the library, whatever the number of rows: what a step adds to a stream it
// later takes away, and other matmuls would leave their rounding behind.
std::vector<at::Tensor> AttentionLayer::projected_rows(const at::Tensor& normed,
                                                       const Pass& pass) const {
  const auto matrices = projections();
  std::vector<at::Tensor> rows;
  for (size_t i = 0; i < matrices.size(); ++i) {
    rows.push_back(linear(projected_from(i, normed, pass), {matrices[i], {}}));
  }
  for (auto& row : rows) row = exchange_.by_heads(std::move(row));
  return rows;
}

Projected AttentionLayer::project(const at::Tensor& x) const {
  std::vector<LinearWeights> matrices;
  for (const auto& weight : projections()) {
    matrices.push_back({weight, {}});
    if (reads_source()) break;
  }
  const auto rows = norm_linear(x, norm_, matrices, {compute_, compute_});
  return reads_source() ? Projected{split_heads(rows[0]), {}, {}} : split(rows);
}

Projected AttentionLayer::project_source(const at::Tensor& output) const {
  const auto rows_of = [&](const at::Tensor& matrix) {
    return split_heads(linear(output, {matrix, {}}));
  };
  return {{}, rows_of(k_), rows_of(v_)};
}

Projected AttentionLayer::convolved(const Projected& projected) const {
  return convolved_by(filters(), projected);
}

void AttentionLayer::hash(const Projected& convolved, const Pass& pass,
                          at::Tensor& buckets) const {
  if (!hashes(kind_) || buckets.defined()) return;
  if (kind_ == AttentionKind::kLshHuggingface) {
    buckets = huggingface_lsh_buckets(
        convolved.q, huggingface_rotations(pass, convolved.q.device()),
        huggingface_.factors);
    return;
  }
  if (hashed_heads_ == 0) return;  // of this rank
  LshConfig config = lsh_;
  if (pass.rounds > 0) config.rounds = pass.rounds;
  buckets = append_ngrams(
      lsh_attention_buckets(convolved.q.narrow(1, 0, hashed_heads_), config,
                            hash_key(pass), exchange_.first_head()),
      pass.ngrams);
}

at::Tensor AttentionLayer::huggingface_rotations(const Pass& pass,
                                                 at::Device device) const {
  const auto& factors = huggingface_.factors;
  return rotations_of_columns(
      hash_key(pass), heads_, pass.rounds > 0 ? pass.rounds : lsh_.rounds,
      d_head_, std::accumulate(factors.begin(), factors.end(), int64_t{0}) / 2,
      device);
}

Projected AttentionLayer::turned(const Projected& convolved,
                                 const at::Tensor& first_position) const {
  const auto& [q, k, v] = convolved;
  return {rotary(q, rotary_, first_position),
          k.defined() ? rotary(k, rotary_, first_position) : k, v};
}

at::Tensor AttentionLayer::attend(const Projected& turned,
                                  const at::Tensor& buckets,
                                  const at::Tensor& mask, const LshConfig& lsh,
                                  int64_t first_head) const {
  const auto& [qk, k, v] = turned;
  const bool causal = reach_ == AttentionReach::kPast;
  const auto of_these = [&](int64_t first_heads) {  // of all, the first ones
    return std::clamp<int64_t>(first_heads - first_head, 0, turned.q.size(1));
  };
  const int64_t successors = of_these(successor_heads_);
  if (kind_ == AttentionKind::kFull) {
    return causal ? full_attention(qk, k, v, causal, mask, gradient_)
                  : cross_attention(qk, k, v, mask, gradient_);
  }
  if (kind_ == AttentionKind::kFullSharedQk) {
    return full_shared_qk_attention(qk, v, causal, mask, successors);
  }
  if (kind_ == AttentionKind::kLocal) {
    return local_attention(qk, v, local_, mask, successors);
  }
  if (kind_ == AttentionKind::kLocalSeparateQk) {
    return local_attention_separate_qk(qk, k, v, local_, mask);
  }
  if (kind_ == AttentionKind::kLshHuggingface) {
    return huggingface_lsh_attention(qk, v, buckets, huggingface_);
  }
  const int64_t hashed = of_these(hashed_heads_);
  if (hashed == 0) {
    return local_attention(qk, v, {near_window_, Window::kTrailing, causal},
                           mask);
  }
  const auto ids = hashed < buckets.size(1)
                       ? buckets.narrow(1, first_head, hashed)
                       : buckets;
  return lsh_attention(qk, v, ids, lsh, mask, successors, near_window_);
}

at::Tensor AttentionLayer::attend_source(const at::Tensor& q,
                                         const Projected& source,
                                         const at::Tensor& mask) const {
  return attend({q, source.k, source.v}, /*buckets=*/{}, mask);
}

// Padding is at the end of a row, where no past has it; but under the chunk
// rule of LSH it would move the windows of what comes before.
at::Tensor AttentionLayer::mask_of(const Pass& pass) const {
  if (reads_source()) return pass.source.mask;
  const bool sees_padding =
      reach_ != AttentionReach::kPast || kind_ == AttentionKind::kLsh;
  return sees_padding ? pass.mask : at::Tensor();
}

at::Tensor AttentionLayer::hash_and_attend(
    const std::vector<at::Tensor>& rows, const std::vector<at::Tensor>& filters,
    const Pass& pass, at::Tensor& buckets) const {
  const auto convolved = convolved_by(filters, split(rows));
  hash(convolved, pass, buckets);
  return attend(turned(convolved), buckets, mask_of(pass));
}

// Lets go of q, k and v.
at::Tensor AttentionLayer::attended_of(const at::Tensor& x, const Pass& pass,
                                       at::Tensor& buckets) const {
  return hash_and_attend(projected_rows(layer_norm(x, norm_, compute_), pass),
                         filters(), pass, buckets);
}

at::Tensor AttentionLayer::joined_heads(const at::Tensor& attended) const {
  const int64_t width = attended.size(1) * d_head_;
  if (attended.size(2) == 1) {
    return attended.reshape({attended.size(0), 1, width});
  }
  return exchange_.by_positions(
      attended.transpose(1, 2).reshape(  // [batch, length, heads * d_head]
          {attended.size(0), attended.size(2), width}));
}

at::Tensor AttentionLayer::join(const at::Tensor& attended) const {
  return linear(joined_heads(attended), {output_, {}});
}

void AttentionLayer::add_joined(const at::Tensor& attended,
                                const at::Tensor& y) const {
  add_linear(joined_heads(attended), {output_, {}}, y);
}

at::Tensor AttentionLayer::dropped(const at::Tensor& x,
                                   const Pass& pass) const {
  return counter_dropout(x, dropout(pass));
}

at::Tensor AttentionLayer::forward(const at::Tensor& x, const Pass& pass,
                                   at::Tensor& buckets) const {
  return dropped(join(attended_of(x, pass, buckets)), pass);
}

// y += scale Dropout(join(attended)), of joined_heads(attended).
void AttentionLayer::add_finished(const at::Tensor& y, const at::Tensor& joined,
                                  const Pass& pass, double scale) const {
  if (!drops(pass)) {
    return add_linear_exactly(joined, {output_, {}}, y, scale);
  }
  y.add_(dropped(linear(joined, {output_, {}}), pass), scale);
}

void AttentionLayer::add_to(const at::Tensor& y, const at::Tensor& x,
                            const Pass& pass, at::Tensor& buckets,
                            double scale) const {
  add_finished(y, joined_heads(attended_of(x, pass, buckets)), pass, scale);
}

}  // namespace reformer
