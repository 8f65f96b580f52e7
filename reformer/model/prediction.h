// What a config will cost, before anything is allocated: parameters, memory and
// arithmetic of a training step.
#pragma once

#include <c10/core/DeviceType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reformer/config/config.h"

namespace reformer {

struct ParameterCounts {
  int64_t embedding = 0;
  int64_t ngrams = 0;
  int64_t positions = 0;
  int64_t attention = 0;     // of all layers, with their norms
  int64_t feed_forward = 0;  // likewise
  int64_t head = 0;          // and the norm of an encoder's output

  int64_t total() const {
    return embedding + ngrams + positions + attention + feed_forward + head;
  }
};

ParameterCounts count_parameters(const Config& config);

// The model's blocks in their order, those of an encoder first.
struct PlannedBlock {
  AttentionKind attention = AttentionKind::kFull;
  bool encoder = false;
  bool cross = false;  // has a cross-attention
};
std::vector<PlannedBlock> planned_blocks(const ModelConfig& model);

// Of one of them.
ParameterCounts count_parameters(const ModelConfig& model,
                                 const PlannedBlock& block);

// Bytes in use at the step's peak. The first group exists from step to step,
// the second is what the pass holds at that moment, the third is the working
// memory of the one part that then runs.
struct MemoryPrediction {
  int64_t parameters = 0;
  int64_t gradients = 0;  // those that exist at the peak
  int64_t optimizer_state = 0;

  int64_t streams = 0;      // residual streams, their gradients, the batch
  int64_t activations = 0;  // kept for backward; of reversible blocks none
  int64_t bucket_ids = 0;   // kept for backward: 2 bytes a token, head, round

  int64_t working = 0;
  std::string part;  // which runs: attention, feed-forward, loss, embedding or
                     // optimizer

  int64_t total() const {
    return parameters + gradients + optimizer_state + streams + activations +
           bucket_ids + working;
  }
};

// The peak, and the most that each part works with whenever it runs.
struct PeakPrediction {
  MemoryPrediction peak;
  int64_t attention = 0;
  int64_t feed_forward = 0;  // of one chunk
  int64_t loss = 0;          // of one chunk
};

// Of tensors and kernel scratch memory, as a MemoryMeter counts: the program
// itself, its libraries and what the allocator rounds up come on top.
PeakPrediction predict_memory(const Config& config,
                              at::DeviceType device = at::kCPU);

// What one of `ranks` has of a step: its sequences, or its part of them.
Config part_of_rank(const Config& config, int64_t ranks);

// Of one of `ranks`, a multiple of train.sequence_parallel: the one that has
// most. Parameters and their gradients are whole; besides its part of a step it
// keeps what it sends by.
PeakPrediction predict_memory_of_rank(const Config& config,
                                      at::DeviceType device, int64_t ranks);

// Floating point operations of a step: matmuls alone, 2 for each
// multiply-add.
struct FlopsPrediction {
  double forward = 0;
  double backward = 0;
  double recomputation = 0;  // what reversible blocks compute again

  double total() const { return forward + backward + recomputation; }
};

FlopsPrediction predict_flops(const Config& config);

// Keys that a query of an attention layer of this kind meets on average, of its
// past or, of an encoder, on both sides, each counted once: for buckets of
// equal size, hashes that have nothing to do with each other, and sequences of
// train.length. Real buckets are uneven, and a query is more likely in a large
// one: random vectors meet up to half as many again. Where buckets overflow
// their windows, rounds find the same near positions: a quarter fewer.
double expected_keys_per_query(const Config& config, AttentionKind kind,
                               bool causal = true);

// The mean over all attentions of the model; cross-attention meets the source.
double mean_keys_per_query(const Config& config);

// The longest input that the positions allow; 0: any.
int64_t longest_input(const Config& config);

// Sequences of a batch, each of train.length positions; of translation pairs of
// them, both as long.
int64_t batch_rows(const Config& config);

// Of an encoder-decoder those of source and target.
int64_t tokens_per_step(const Config& config);

}  // namespace reformer
