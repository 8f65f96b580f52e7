// What an attention layer remembers of the hypotheses of a beam search, and how
// they go on.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/kernels/beam_attention.h"
#include "reformer/model/attention_layer.h"

namespace reformer {

// In which row of every earlier step the hypotheses of this step lay. Choosing
// hypotheses permutes this table; keys and values stay where they were written.
class BeamAncestors {
 public:
  explicit BeamAncestors(at::Device device) : device_(device) {}

  // One more position. parents: [rows] int64 on the device, the rows of the
  // step before that these go on from; of the first step only their number
  // counts.
  void advance(const at::Tensor& parents);

  int64_t positions() const { return slots_.size(0); }  // with the newest
  int64_t rows() const { return slots_.size(1); }
  const at::Tensor& slots() const { return slots_; }  // [positions, rows] int32

 private:
  at::Device device_;
  at::Tensor slots_;
};

// The function of AttentionLayer::forward in evaluation for one more position
// of every row, as AttentionCache has it; all rows have the same number of
// positions.
class BeamCache {
 public:
  // most_rows: no step has more.
  BeamCache(const AttentionLayer& layer, int64_t most_rows, const Pass& pass,
            const Placement& placement);

  //   x          [rows, 1, d_model]: the next position of every row
  //   position   [rows] int64: how many came before it
  //   ancestors  advanced to this position
  //   buckets    as AttentionLayer::forward's
  //   y          [rows, 1, d_model], to which the layer's output is added
  //
  // Nothing waits for a GPU.
  void step(const at::Tensor& x, const at::Tensor& position,
            const BeamAncestors& ancestors, at::Tensor& buckets,
            const at::Tensor& y);

 private:
  // Numbers of every (position, row), in blocks that never move.
  struct Blocks {
    std::vector<at::Tensor> blocks;  // [kBeamBlockPositions, most_rows, ...]
    at::Tensor table;                // [blocks] pointers, where kernels read

    // The rows of one position, [rows, ...]; adds a block where there is none.
    at::Tensor at(int64_t position, int64_t rows, at::IntArrayRef sizes,
                  const at::TensorOptions& options);
  };

  bool is_lsh() const { return layer_.kind() == AttentionKind::kLsh; }
  void write(const Projected& turned, const at::Tensor& buckets,
             int64_t position);
  at::Tensor seen(const at::Tensor& buckets, const BeamAncestors& ancestors);
  template <class T>
  at::Tensor attend(const at::Tensor& q, const at::Tensor& seen,
                    const BeamAncestors& ancestors);

  const AttentionLayer& layer_;
  int64_t most_rows_;
  LshConfig lsh_;         // the layer's, trailing, with the pass's rounds
  at::Tensor rotations_;  // of LSH layers; the same for every position
  Placement placement_;
  Blocks numbers_;  // of [2, heads, d_head]: key, value
  Blocks buckets_;  // of [heads, rounds] uint16: of LSH layers
};

// Of which sentence's source each row reads how much.
struct BeamSources {
  at::Tensor sentences;  // [rows] int32 on the device
  at::Tensor lengths;    // [rows] int32 on the device: positions from 0 on
  int64_t longest = 0;   // of `lengths`
};

//   q        [rows, heads, 1, d_head]
//   source   k, v [sentences, heads, length, d_head], which no row copies
//   returns  [rows, heads, 1, d_head]: cross-attention, no gradient
at::Tensor attend_source(const at::Tensor& q, const Projected& source,
                         const BeamSources& of_rows);

}  // namespace reformer
