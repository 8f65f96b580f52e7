// What a decoder will take of memory for the texts that it reads.
#pragma once

#include <cstdint>

#include "reformer/model/language_model.h"

namespace reformer {

// Bytes of keys, values and histories of buckets of one text of `positions`
// positions, start token included, at most: all that a Decoder keeps between
// steps and grows with its texts. rounds: of LSH attention, 0: the config's.
int64_t decoding_memory(const LanguageModel& model, int64_t positions,
                        int64_t rounds = 0);

}  // namespace reformer
