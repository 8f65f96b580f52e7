// A small encoder-decoder and a padded batch of pairs, for the tests.
#pragma once

#include <string>

#include "reformer/model/encoder_decoder.h"
#include "tests/model/small_model.h"

namespace reformer {

// Two layers of encoder, three of decoder, of these attentions; dropout, label
// smoothing, chunks that divide nothing.
Config small_translation_config(const std::string& attention = "full",
                                const std::string& encoder_attention = "full");

// Rows of different lengths, the longest of which have no padding; what stands
// in the padding depends on `padding` alone, all else on `seed`.
Batch padded_pairs(const Config& config, uint64_t seed, int64_t padding = 0);

// One row of a batch, without its padding.
Batch alone(const Batch& batch, int64_t row);

// A training step, of the sum of losses times `scale`.
Step step_of(EncoderDecoder& model, const Batch& batch, double scale = 0.01);

}  // namespace reformer
