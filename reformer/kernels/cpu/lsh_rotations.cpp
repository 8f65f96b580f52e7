#include "reformer/kernels/lsh_rotations.h"

#include <bit>
#include <cmath>

#include "reformer/base/parallel.h"

namespace reformer::kernels::cpu {
namespace {

// Rounds to the nearest bf16, ties to even.
float round_to_bf16(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  bits += 0x7FFF + ((bits >> 16) & 1);
  return std::bit_cast<float>(bits & 0xFFFF0000);
}

}  // namespace

// One task draws one (head, round). Box-Muller in float64: after rounding to
// bf16 another device's log and cos give the same entries.
void lsh_rotations(const LshRotationsArgs& args) {
  const PhiloxKey key = rotation_key(args.key);
  const int64_t entries = args.d_head * args.columns;
  parallel_tasks(args.heads * args.rounds, [&](int64_t task) {
    const auto head = static_cast<uint32_t>(task / args.rounds);
    const auto round = static_cast<uint32_t>(task % args.rounds);
    float* out = args.rotations + task * entries;
    for (int64_t at = 0; at < entries; at += 4) {
      const auto bits =
          philox(key, {static_cast<uint32_t>(at / 4), round, head, 0});
      for (int64_t e = 0; e < 4 && at + e < entries; ++e) {
        const double radius = std::sqrt(-2.0 * std::log(uniform(bits[e & 2])));
        const double angle = 2.0 * M_PI * uniform(bits[(e & 2) + 1]);
        const double normal =
            radius * (e % 2 == 0 ? std::cos(angle) : std::sin(angle));
        out[at + e] = round_to_bf16(static_cast<float>(normal));
      }
    }
  });
}

}  // namespace reformer::kernels::cpu
