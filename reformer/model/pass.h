// What a pass through the model is told besides its input.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "reformer/ops/counter_dropout.h"

namespace reformer {

// What the cross-attention of a decoder reads besides its stream.
struct EncoderOutput {
  at::Tensor output;  // [batch, source length, d_model], of the matmuls' type
  at::Tensor mask;    // [batch, source length] bool: real; undefined: all are
  // The sum of the output's gradients so far, [batch, source length, d_model]:
  // each cross-attention adds its own on the way back.
  at::Tensor gradient = {};
};

struct Pass {
  uint64_t seed = 0;
  uint64_t step = 0;      // keys hashes and dropout; 0 in evaluation
  bool training = false;  // dropout
  int64_t rounds = 0;     // of LSH attention; 0: the config's
  // Where a GPU finds the step when the pass is captured and replayed, in place
  // of `step`.
  const uint64_t* step_on_device = nullptr;
  // Which of the step's examples is the batch's first: each drops elements of
  // its own, the same however a step is cut into batches. Hashes are alike for
  // all of them.
  int64_t first_example = 0;
  // Which of a sequence's positions is the first here: of ranks that share
  // sequences each has a part of them.
  int64_t first_position = 0;
  // [batch, length] bool: which positions are real, the first so many of each
  // row; undefined: all are.
  at::Tensor mask = {};
  EncoderOutput source = {};  // of a decoder
  // [batch, n-grams, length] uint16: buckets that LSH layers have besides those
  // that they hash (NgramBuckets); undefined: none.
  at::Tensor ngrams = {};
};

// Of a place of the model that `site` numbers, and in training alone; of
// positions from `first_position` of the pass on.
inline Dropout dropout_of(const Pass& pass, double probability, uint32_t site,
                          int64_t first_position = 0) {
  return {pass.training ? probability : 0.0,
          {pass.seed, pass.step, site, pass.step_on_device, pass.first_example},
          pass.first_position + first_position};
}

}  // namespace reformer
