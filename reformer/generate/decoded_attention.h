// What an attention layer is when positions come one at a time.
#pragma once

#include "reformer/kernels/attend_next.h"
#include "reformer/model/attention_layer.h"

namespace reformer {

// The layer's, by the trailing rule whatever its own is (under `chunk` a later
// token may shift what an earlier one sees), with the pass's rounds.
LshConfig decoding_lsh(const AttentionLayer& layer, const Pass& pass);

// What heads see, LSH rounds aside; of LSH layers those that hash or the
// others.
kernels::EarlierPositions earlier_positions(const AttentionLayer& layer,
                                            bool hashed);

}  // namespace reformer
