#include "reformer/kernels/counter_dropout.h"

#include <algorithm>

#include "reformer/base/parallel.h"

namespace reformer::kernels::cpu {
namespace {

template <class T>
void drop(const CounterDropoutArgs<T>& args) {
  constexpr int64_t kRowsPerTask = 64;
  constexpr int64_t kPerCall = 8;
  const PhiloxKey key = dropout_philox_key(args.key);
  const DropoutRule rule = dropout_rule(args.probability);
  const T scale = T(rule.scale);
  const int64_t rows = args.batch * args.length;
  parallel_tasks((rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task) {
    const int64_t end = std::min((task + 1) * kRowsPerTask, rows);
    for (int64_t row = task * kRowsPerTask; row < end; ++row) {
      const uint32_t example = dropout_example(args.key, row / args.length);
      const auto position =
          static_cast<uint32_t>(args.first_position + row % args.length);
      for (int64_t c = 0; c < args.width; c += kPerCall) {
        const auto bits = philox(
            key, {static_cast<uint32_t>(c / kPerCall), position, example, 0});
        const int64_t n = std::min(kPerCall, args.width - c);
        for (int64_t e = 0; e < n; ++e) {
          const uint32_t drawn = (bits[e / 2] >> (e % 2 * 16)) & 0xFFFF;
          const int64_t at = row * args.width + c + e;
          args.y[at] = drawn < rule.threshold ? T(0) : args.x[at] * scale;
        }
      }
    }
  });
}

}  // namespace

void counter_dropout(const CounterDropoutArgs<float>& args) { drop(args); }
void counter_dropout(const CounterDropoutArgs<double>& args) { drop(args); }

}  // namespace reformer::kernels::cpu
