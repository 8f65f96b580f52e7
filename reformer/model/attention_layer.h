// Multi-head attention with its projections: one branch of a block.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "reformer/config/config.h"
#include "reformer/model/parameter_store.h"
#include "reformer/model/parts.h"
#include "reformer/model/pass.h"
#include "reformer/model/sequence_exchange.h"
#include "reformer/ops/full_attention.h"
#include "reformer/ops/huggingface_lsh.h"
#include "reformer/ops/layer_norm.h"
#include "reformer/ops/local_attention.h"
#include "reformer/ops/rotary.h"

namespace reformer {

// What a position sees: those before it (and in full attention itself), all of
// its sequence, or all of the encoder's output (cross-attention).
enum class AttentionReach { kPast, kEverything, kSource };

// Which of the model's attentions a layer is.
struct AttentionPlace {
  std::string name;  // of its parameters: "blocks.0.attention."
  AttentionKind kind = AttentionKind::kFull;  // kSource: no other
  AttentionReach reach = AttentionReach::kPast;
  uint32_t block = 0;   // keys its rotations
  uint32_t branch = 0;  // keys its dropout
};

// Queries, keys and values, [batch, heads, length, d_head] each; k is undefined
// where it is shared with q. Of cross-attention k and v are as long as the
// source.
struct Projected {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
};

// What the gradients need of an evaluation.
struct EvaluatedAttention {
  Normed normed;                 // the input's; y undefined: to be made again
  std::vector<at::Tensor> rows;  // qk, v, and where it is not shared k,
                                 // [batch, length, heads * d_head] (of cross-
                                 // attention the source's length): leaves
  std::vector<at::Tensor> filters;  // AttentionLayer::filters: leaves
  at::Tensor attended;              // of autograd's graph that ends here
  at::Tensor joined;                // attended, by positions, where ranks share
                                    // sequences; rows and attended are by heads
};

class AttentionLayer {
 public:
  AttentionLayer(const Config& config, const AttentionPlace& place,
                 ParameterStore& store);

  //   x        [batch, length, d_model]
  //   returns  [batch, length, d_model]: Dropout(Attention(LN(x)))
  //
  // Positions that pass.mask calls padding, at the end of rows, are seen by
  // nobody; what is returned for them is of no meaning. Cross-attention
  // reads pass.source, which is normed already, and adds the gradient of its
  // output to pass.source.gradient.
  //
  // LSH layers hash when `buckets` is undefined and leave there what they used
  // ([batch, heads, rounds, length] uint16); given buckets are used as they
  // are, because a bucket hashed from a rebuilt input may differ.
  at::Tensor forward(const at::Tensor& x, const Pass& pass,
                     at::Tensor& buckets) const;

  // y += scale forward(x), without gradients.
  void add_to(const at::Tensor& y, const at::Tensor& x, const Pass& pass,
              at::Tensor& buckets, double scale) const;

  // Returns sum + forward(x), and what add_gradients needs.
  at::Tensor evaluate_and_add(const at::Tensor& sum, const at::Tensor& x,
                              const Pass& pass, at::Tensor& buckets,
                              EvaluatedAttention& evaluated) const;

  // Adds the gradients of the parameters, and that of x to d_x. d_y is that of
  // the sum, and may be the same tensor. Both contiguous.
  void add_gradients(EvaluatedAttention evaluated, const at::Tensor& d_y,
                     const at::Tensor& d_x, const Pass& pass) const;

  // Reverses y += forward(x), and adds the gradients likewise: one evaluation
  // serves both. All four contiguous.
  void reverse(const ReversibleBranch& branch, const Pass& pass,
               at::Tensor buckets) const;

  // What forward is made of, for whoever attends by itself (generate/):
  // forward(x) is Dropout(join(attend(turned(convolved(project(x)))))); without
  // gradients kernels for few rows round project and add_joined otherwise.
  // Buckets are those of what `convolved` returns: rotary positions, which
  // `turned` brings in, part what is far apart.
  // Of cross-attention project gives q, and project_source, of an encoder's
  // output [batch, source length, d_model], k and v.
  Projected project(const at::Tensor& x) const;
  Projected project_source(const at::Tensor& output) const;
  Projected convolved(const Projected& projected) const;
  void hash(const Projected& convolved, const Pass& pass,
            at::Tensor& buckets) const;
  Projected turned(const Projected& convolved,
                   const at::Tensor& first_position = {}) const;
  at::Tensor attend(const Projected& turned, const at::Tensor& buckets,
                    const at::Tensor& mask = {}) const {
    return attend(turned, buckets, mask, lsh_);
  }

  // LSH layers by other windows or rounds than their own. `turned` may be of
  // some of the heads, from `first_head` on; `buckets` are those of all.
  at::Tensor attend(const Projected& turned, const at::Tensor& buckets,
                    const at::Tensor& mask, const LshConfig& lsh,
                    int64_t first_head = 0) const;

  // The same of cross-attention: q of project, k and v of project_source, and
  // EncoderOutput::mask.
  at::Tensor attend_source(const at::Tensor& q, const Projected& source,
                           const at::Tensor& mask) const;
  at::Tensor join(const at::Tensor& attended) const;

  // y += join(attended), without gradients.
  void add_joined(const at::Tensor& attended, const at::Tensor& y) const;

  // Of this layer's rotations.
  HashKey hash_key(const Pass& pass) const {
    return {pass.seed, pass.step, block_, pass.step_on_device};
  }

  // Of the short convolutions of qk, v and where it is not shared k,
  // [taps, heads, d_head] each; none where there are no convolutions.
  std::vector<at::Tensor> filters() const;

  int64_t heads() const { return heads_; }
  int64_t d_head() const { return d_head_; }
  int64_t successor_heads() const { return successor_heads_; }
  AttentionKind kind() const { return kind_; }
  bool reads_source() const { return reach_ == AttentionReach::kSource; }

  // Of LSH layers, the heads that hash, the first ones, and how they do:
  // n_buckets and local_window resolved.
  int64_t hashed_heads() const { return hashed_heads_; }
  const LshConfig& lsh() const { return lsh_; }
  // Of layers of lsh_huggingface, and the rotations that they hash by.
  const HuggingfaceLsh& huggingface() const { return huggingface_; }
  at::Tensor huggingface_rotations(const Pass& pass, at::Device device) const;
  // Of local attention.
  const LocalConfig& local() const { return local_; }
  // The last positions that the other heads see, and nothing else.
  int64_t near_window() const { return near_window_; }

 private:
  bool drops(const Pass& pass) const { return pass.training && dropout_ > 0; }
  Dropout dropout(const Pass& pass) const {
    return dropout_of(pass, dropout_, branch_);
  }
  at::Tensor dropped(const at::Tensor& x, const Pass& pass) const;
  void add_finished(const at::Tensor& y, const at::Tensor& joined,
                    const Pass& pass, double scale) const;
  at::Tensor joined_of(EvaluatedAttention& evaluated) const;
  at::Tensor mask_of(const Pass& pass) const;
  // The way forward of all that follows whole sequences: attended_of where
  // nothing is kept, and by its two parts where leaves are put between them.
  at::Tensor attended_of(const at::Tensor& x, const Pass& pass,
                         at::Tensor& buckets) const;
  std::vector<at::Tensor> projected_rows(const at::Tensor& normed,
                                         const Pass& pass) const;
  at::Tensor hash_and_attend(const std::vector<at::Tensor>& rows,
                             const std::vector<at::Tensor>& filters,
                             const Pass& pass, at::Tensor& buckets) const;
  EvaluatedAttention evaluate(const at::Tensor& x, const Pass& pass,
                              at::Tensor& buckets, bool keep_normed) const;
  at::Tensor finish_backward(at::Tensor joined, const at::Tensor& d_y,
                             const Pass& pass) const;
  std::vector<at::Tensor> projections() const;
  const at::Tensor& projected_from(size_t i, const at::Tensor& normed,
                                   const Pass& pass) const;
  Projected split(const std::vector<at::Tensor>& rows) const;
  void add_filter_gradients(const std::vector<at::Tensor>& filters) const;
  at::Tensor own_of_filter(const at::Tensor& filter) const;
  at::Tensor split_heads(const at::Tensor& x) const;
  at::Tensor joined_heads(const at::Tensor& attended) const;

  AttentionKind kind_;
  AttentionReach reach_;
  uint32_t block_;
  uint32_t branch_;
  int64_t heads_;
  int64_t d_head_;
  SequenceExchange exchange_;
  // Of the heads that this rank attends with, as a rule all.
  int64_t successor_heads_;  // 0 where k is not shared
  int64_t hashed_heads_;
  int64_t near_window_;
  RotaryConfig rotary_;
  double dropout_;
  LshConfig lsh_;
  LocalConfig local_;
  HuggingfaceLsh huggingface_;
  GradientSums gradient_;  // of full attention
  at::ScalarType compute_;
  NormWeights norm_;  // of [d_model]
  at::Tensor qk_;     // [heads * d_head, d_model]; of full attention: q
  at::Tensor k_;      // likewise, of full attention only
  at::Tensor v_;      // likewise
  std::vector<at::Tensor> filters_;  // [taps * heads * d_head] each: vectors,
                                     // which optimizers do not decay
  at::Tensor output_;                // [d_model, heads * d_head]
};

}  // namespace reformer
