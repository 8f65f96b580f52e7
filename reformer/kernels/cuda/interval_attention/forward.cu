// Interval attention in bf16, forward: one launch for each round.
//
// A block owns kWarps * 16 consecutive places of one round's order, as
// queries. It gathers the rows at these places and at those before (and after)
// that their intervals reach into shared memory, q and v once each; each warp
// takes 16 queries over the hull of their own intervals. Between rounds the
// weighted values of a query are kept as fp32 sums in the workspace, its
// weights' reference and sum in `softmax`: a round reads and writes them once.
#include "reformer/kernels/cuda/interval_attention/forward_block.cuh"
#include "reformer/kernels/cuda/interval_attention/launch.cuh"
#include "reformer/kernels/cuda/interval_attention/statistics.h"

namespace reformer::kernels::cuda {
namespace {

template <int D, int kWarps, int kHalo, int kBlocks>
__global__ void __launch_bounds__(kWarps * 32, kBlocks)
    attend_round(const __grid_constant__ ForwardRound p) {
  using Block = ForwardBlock<D, kWarps, kHalo>;
  constexpr int kRows = Block::kRows;
  constexpr int kAll = Block::kAll;
  REFORMER_SHARED_MEMORY(memory);
  let_next_round_start();
  const Block block(p, memory);
  const HeadRound& head = block.head;
  const int tid = block.tid;

  // The halo is first what lies before the block's own places.
  int row_here = kNoRow;
  if (tid < kAll) {
    row_here = head.row_at(block.first + tid - (tid < kRows ? 0 : kAll));
    block.rows[tid] = head.key_in(row_here);
  }
  const RowIntervals intervals_here(head, tid < kRows ? row_here : kNoRow);
  const RowPlaces places_here(head, row_here);
  if (!head.shared) {
    const float scale = kLog2E * rsqrtf(static_cast<float>(head.d));
    for (int r = tid; r < kAll; r += Block::kThreads) block.scales[r] = scale;
  }
  __syncthreads();

  Queries<D> queries;
  if (!head.shared) block.copy_and_load_queries(queries);
  // All of the halo, before anybody knows how much of it is needed: to wait
  // for the intervals first would cost more.
  block.copy_keys(0, kAll);
  commit_copies();
  const int row[2] = {block.rows[block.warp_row + block.g].row,
                      block.rows[block.warp_row + block.g + 8].row};
  const auto kept = block.kept();
  wait_for_last_round();
  block.begin(queries, kept, row);

  if (tid < kRows) {
    block.interval[tid] =
        intervals_here.store(block.earlier + tid, kRows, p.round);
  }
  if (tid < kAll) places_here.store(block.places + tid, kAll, p.round);
  wait_for_copies<0>();
  __syncthreads();
  queries.own[0] = span_of(block.interval[block.warp_row + block.g]);
  queries.own[1] = span_of(block.interval[block.warp_row + block.g + 8]);
  const auto hulls = block.hulls();
  bool bounded = false;
  if (head.shared) {
    block.load_queries(queries);
    bounded = block.bound(queries);
  }
  // The block's own places, the halo, then what lies farther: before, after.
  int at = 0;
  int place = block.first;
  int n = kRows;
  while (true) {
    block.attend(queries, bounded, hulls, place, at, n);
    at = kRows;
    n = kHalo;
    if (place == block.first) {
      place -= kHalo;
      continue;
    }
    place += place < block.first ? -kHalo : kHalo;
    if (place < block.first && place + kHalo <= hulls.begin) {
      place = block.first + kRows;
    }
    if (place > block.first && place >= hulls.end) break;
    block.fetch_halo(place);
  }
  block.end(queries, kept, row);
}

template <int D, int kWarps, int kHalo, int kBlocks>
void attend_one_round(const ForwardRound& p, int heads, cudaStream_t stream) {
  using Layout = ForwardLayout<D, kWarps * 16, kHalo>;
  constexpr const char* kName = "interval_attention";
  launch_round(attend_round<D, kWarps, kHalo, kBlocks>,
               grid_for(heads * ceil_div(p.args.length, kWarps * 16), 1, kName),
               kWarps * 32, Layout::bytes(p.round), stream, p, kName);
}

template <int D>
void attend_all_rounds(const IntervalAttentionArgs<bf16>& args, void* workspace,
                       cudaStream_t stream) {
  // Measured: 8 warps and longer halos read fewer rows, but wait more.
  constexpr int kWarps = 4;
  constexpr int kHalo = D <= 64 ? 64 : 32;
  constexpr int kBlocks = D <= 64 ? 4 : 3;
  using Layout = ForwardLayout<D, kWarps * 16, kHalo>;
  using Small = ForwardLayout<D, kSmallWarps * 16, kSmallHalo>;
  static_assert(Small::bytes(kMaxRounds - 1) <= kLeastSharedMemory);
  const int64_t rows = args.batch * args.heads * args.length;
  ForwardRound p = {args, nullptr, nullptr, 0, 0};
  auto* scales = static_cast<float*>(workspace);
  p.scales = scales;
  p.sums = scales + (rows + 3) / 4 * 4;
  const int rounds = static_cast<int>(args.rounds.rounds);
  require_room(Small::bytes(rounds - 1), rounds, D, "interval_attention");
  if (!args.k.data) inverse_norms(args, kLog2E, scales, stream);
  for_each_group(args, [&](int first, int heads) {
    p.first_head = first;
    for (int round = 0; round < rounds; ++round) {
      p.round = round;
      fits_shared_memory(Layout::bytes(round))
          ? attend_one_round<D, kWarps, kHalo, kBlocks>(p, heads, stream)
          : attend_one_round<D, kSmallWarps, kSmallHalo, 2>(p, heads, stream);
    }
  });
}

}  // namespace

int64_t interval_attention_workspace(const IntervalAttentionArgs<bf16>& args) {
  const int64_t rows = args.batch * args.heads * args.length;
  const int64_t scales = (rows + 3) / 4 * 4;
  const int64_t sums =
      args.rounds.rounds > 1
          ? heads_together(args) * args.length * padded_d(args.d_head)
          : 0;
  return (scales + sums) * 4;
}

void interval_attention(const IntervalAttentionArgs<bf16>& args,
                        void* workspace, void* stream) {
  require_supported(args);
  with_padded_d(args.d_head, [&](auto d) {
    attend_all_rounds<d>(args, workspace, stream_of(stream));
  });
}

}  // namespace reformer::kernels::cuda
