#include "reformer/kernels/beam_attention.h"

#include <algorithm>
#include <vector>

#include "reformer/base/parallel.h"
#include "reformer/kernels/cpu/dispatch.h"

namespace reformer::kernels::cpu {
namespace {

// One (row, head), from the last position to the first: how many of its bucket
// a round has met says whether its window reaches further.
void look_back(const BeamSeenArgs& args, int64_t row, int64_t head,
               uint8_t* seen) {
  const uint16_t* own =
      args.own + (row * args.hashed_heads + head) * args.rounds;
  std::vector<int64_t> met(static_cast<std::size_t>(args.rounds), 0);
  for (int64_t p = args.position - 1; p >= 0; --p) {
    const uint16_t* buckets = args.buckets.at(p, args.slots.of(p, row), head);
    bool found = args.position - p <= args.local_window;
    for (int64_t r = 0; r < args.rounds; ++r) {
      if (buckets[r] != own[r]) continue;
      found = met[static_cast<std::size_t>(r)]++ < args.window || found;
    }
    seen[p] = found ? 1 : 0;
  }
}

void find_seen(const BeamSeenArgs& args, int64_t row, int64_t head) {
  uint8_t* seen = args.seen + (row * args.heads + head) * args.position;
  if (head < args.hashed_heads) return look_back(args, row, head, seen);
  const int64_t unseen = std::max<int64_t>(0, args.position - args.near_window);
  std::fill_n(seen, unseen, uint8_t{0});
  std::fill(seen + unseen, seen + args.position, uint8_t{1});
}

}  // namespace

REFORMER_DECLARE_SIMD_KERNEL(beam_attention, BeamAttentionArgs)

void beam_attention(const BeamAttentionArgs<float>& args) {
  dispatch(args, plain::beam_attention<float>, avx2::beam_attention<float>,
           avx512::beam_attention<float>);
}

void beam_attention(const BeamAttentionArgs<double>& args) {
  plain::beam_attention(args);
}

void beam_seen(const BeamSeenArgs& args) {
  constexpr int64_t kWorthwhile = 1 << 15;  // buckets
  const int64_t tasks = args.rows * args.heads;
  parallel_tasks_if(tasks * args.position * args.rounds >= kWorthwhile, tasks,
                    [&](int64_t task) {
                      find_seen(args, task / args.heads, task % args.heads);
                    });
}

}  // namespace reformer::kernels::cpu
