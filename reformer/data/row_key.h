// Where generated and randomly chosen data come from: each row of each batch
// has a generator of its own, so any batch can be made again at any time.
#pragma once

#include <cstdint>

#include "reformer/base/philox.h"

namespace reformer {

enum class Draw : uint32_t {  // what is drawn; no two share their numbers
  kDuplicationTraining = 0x44755472,
  kDuplicationValidation = 0x44755661,
  kDuplicationTest = 0x44755465,
  kTextWindow = 0x54785769,
  kTextRepeats = 0x54785265,
  kImageOrder = 0x496d4f72,
  kImageHoldOut = 0x496d486f,
  kRecallTraining = 0x52655472,
  kRecallValidation = 0x52655661,
  kRecallTest = 0x52655465,
  kTranslationOrder = 0x54724f72,
  kTranslationHoldOut = 0x5472486f,
  kToyTraining = 0x546f5472,
  kToyValidation = 0x546f5661,
  kToyTest = 0x546f5465,
  kToyWords = 0x546f576f,
};

// The key to draw row `row` of batch `index` with.
inline PhiloxKey row_key(int64_t seed, Draw draw, int64_t index, int64_t row) {
  const auto low = [](int64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](int64_t x) { return static_cast<uint32_t>(x >> 32); };
  const auto mixed =
      philox({low(seed), high(seed)},
             {low(index), high(index), low(row), static_cast<uint32_t>(draw)});
  return {mixed[0], mixed[1]};
}

}  // namespace reformer
