// What each part of a model holds while it works: counts along the code of the
// stacks, the head and the attentions, in bytes.
//
// A config is that of a rank here: of train.length positions, of which each of
// train.sequence_parallel ranks has as many.
#pragma once

#include <c10/core/DeviceType.h>

#include <algorithm>
#include <cstdint>

#include "reformer/config/config.h"

namespace reformer {

inline constexpr int64_t kFloatBytes = 4;

int64_t whole_length(const Config& config);

// Of the rank that has most of them.
int64_t own_heads(const Config& config);

// Of an element in matmuls and attention.
int64_t compute_bytes(const Config& config, at::DeviceType device);

// Bytes of the tensors that a config is made of.
struct TensorSizes {
  TensorSizes(const Config& config, at::DeviceType on);

  // A matrix of the parameters as matmuls take it: a copy, if it is rounded.
  int64_t rounded(int64_t elements) const {
    return compute == kFloatBytes ? 0 : elements * compute;
  }

  at::DeviceType device;
  int64_t compute;  // bytes of an element in matmuls and attention
  int64_t tokens;
  int64_t all_tokens;   // of all ranks that share them, as each rank has them
  int64_t stream;       // [tokens, d_model]
  int64_t normed;       // likewise, in the type of matmuls
  int64_t heads;        // [all tokens, own heads * d_head]
  int64_t head_rows;    // all tokens * own heads, in rows
  int64_t hashed_rows;  // of heads that hash
  int64_t inner;        // [tokens, d_ff]
};

bool keeps_activations(const Config& config);

// At the attention's backward: its normed input, unless that is made again
// later; the graph, the gradients of its output, of qk and of v; the sorted
// rounds; scratch.
int64_t attention_working(const Config& config, AttentionKind kind,
                          at::DeviceType device);

// Kept for an attention's gradients; a CPU sorts the rounds again.
int64_t attention_activations(const Config& config, AttentionKind kind,
                              at::DeviceType device);

// Of a chunk in the feed-forward.
int64_t feed_forward_tokens(const Config& config, at::DeviceType device);

// Of [chunk, d_ff] what the activation saw and its result or gradient; the
// normed input, the output's gradient and the normed input's.
int64_t feed_forward_working(const Config& config, at::DeviceType device);

// Of [tokens, d_ff] what is kept for an activation's gradient: what it was
// given and its result, or its result alone (keeps_result of ops/activation.h).
int64_t kept_inner(const ModelConfig& model);

// Kept for a feed-forward's gradients: its input, that normed, and kept_inner.
int64_t feed_forward_activations(const Config& config, at::DeviceType device);

// Logits and their log-probabilities, which become gradients; the joined
// streams, that normed, and the gradients of both; a gradient of the matrix
// that is added to one there is.
struct LossWorking {
  int64_t with_logits;     // before the first part's gradients
  int64_t with_gradients;  // when they are made
  bool one_part;

  int64_t most() const { return std::max(with_logits, with_gradients); }
};
LossWorking loss_working(const Config& config, at::DeviceType device);

// Of an optimizer's state. `blocks`: of the elements in blocks, how many are
// there; `others`: of those elsewhere.
int64_t optimizer_bytes(const Config& config, int64_t others, int64_t blocks);

}  // namespace reformer
