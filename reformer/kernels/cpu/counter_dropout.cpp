#include "reformer/kernels/counter_dropout.h"

#include <algorithm>

#include "reformer/core/parallel.h"
#include "reformer/core/philox.h"

namespace reformer::kernels::cpu {
namespace {

PhiloxKey step_key(const DropoutKey& key) {
  const auto mixed = philox(
      {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)},
      {static_cast<uint32_t>(key.step), static_cast<uint32_t>(key.step >> 32),
       key.site, /*purpose: dropout=*/0x44726f70});
  return {mixed[0], mixed[1]};
}

// An element's counter is its row of the batch, its position and its column;
// one Philox call decides on eight elements, 16 bits each.
template <class T>
void drop(const CounterDropoutArgs<T>& args) {
  constexpr int64_t kRowsPerTask = 64;
  constexpr int64_t kPerCall = 8;
  const PhiloxKey key = step_key(args.key);
  const auto threshold =
      static_cast<uint32_t>(std::min(args.probability * 65536.0, 65535.0));
  const T scale = T(1.0 / (1.0 - threshold / 65536.0));
  const int64_t rows = args.batch * args.length;
  parallel_tasks((rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task) {
    const int64_t end = std::min((task + 1) * kRowsPerTask, rows);
    for (int64_t row = task * kRowsPerTask; row < end; ++row) {
      const auto batch = static_cast<uint32_t>(row / args.length);
      const auto position =
          static_cast<uint32_t>(args.first_position + row % args.length);
      for (int64_t c = 0; c < args.width; c += kPerCall) {
        const auto bits =
            philox(key, {static_cast<uint32_t>(c / kPerCall), position, batch, 0});
        const int64_t n = std::min(kPerCall, args.width - c);
        for (int64_t e = 0; e < n; ++e) {
          const uint32_t drawn = (bits[e / 2] >> (e % 2 * 16)) & 0xFFFF;
          const int64_t at = row * args.width + c + e;
          args.y[at] = drawn < threshold ? T(0) : args.x[at] * scale;
        }
      }
    }
  });
}

}  // namespace

void counter_dropout(const CounterDropoutArgs<float>& args) { drop(args); }
void counter_dropout(const CounterDropoutArgs<double>& args) { drop(args); }

}  // namespace reformer::kernels::cpu
