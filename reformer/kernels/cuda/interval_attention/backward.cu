// Interval attention in bf16, backward: one launch for each round.
//
// A block owns kWarps * 16 consecutive places of one round's order, as keys
// and as queries, and computes all that this round adds to their gradients:
// first over the queries that see its keys (dk, dv), then over the keys that
// its queries see (dq). What the first pass found for pairs within the block
// waits in shared memory for the second. A pair that straddles two blocks is
// computed by both, so that nobody adds to another's sums: no atomics, and each
// row's sums are read and written once a round. The gradient of a unit key is
// projected and is where dq's sum begins.
#include "reformer/kernels/cuda/interval_attention/backward_block.cuh"
#include "reformer/kernels/cuda/interval_attention/launch.cuh"
#include "reformer/kernels/cuda/interval_attention/statistics.h"
#include "reformer/kernels/cuda/interval_attention/successors.cuh"

namespace reformer::kernels::cuda {
namespace {

template <int D, int kWarps, int kHalo, int kBlocks, bool kKeep>
__global__ void __launch_bounds__(kWarps * 32, kBlocks)
    collect_round(const __grid_constant__ BackwardRound p) {
  using Block = BackwardBlock<D, kWarps, kHalo, kKeep>;
  constexpr int kRows = Block::kRows;
  constexpr int kAll = Block::kAll;
  REFORMER_SHARED_MEMORY(memory);
  let_next_round_start();
  const Block block(p, memory);
  const HeadRound& head = block.head;
  const int tid = block.tid;

  int query_here = kNoRow;
  int key_here = kNoRow;
  if (tid < kAll) {
    query_here = head.row_at(block.first + tid);
    key_here = tid < kRows ? query_here : head.row_at(block.first + tid - kAll);
    block.query_rows[tid] = query_here;
    block.key_rows[tid] = head.key_in(key_here);
    if (!head.shared) block.scales[tid] = rsqrtf(static_cast<float>(head.d));
  }
  const RowIntervals intervals_here(head, query_here);
  const RowPlaces places_here(head, key_here);
  __syncthreads();
  block.copy_first_tiles();

  const int row[2] = {block.query_rows[block.warp_row + block.g],
                      block.query_rows[block.warp_row + block.g + 8]};
  wait_for_last_round();
  float d_rows[D / 8][4];  // dk, then dq
  set_zero<D>(d_rows);
  typename Block::Hull hull;
  {
    float d_values[D / 8][4];
    if (p.round > 0) {
      load_sums<D>(d_values, p.v_sums + block.sums_at, row, block.t);
    } else {
      set_zero<D>(d_values);
    }
    if (tid < kAll) {
      block.store_intervals(tid, intervals_here);
      places_here.store(block.places + tid, kAll, p.round);
    }
    wait_for_copies<0>();
    __syncthreads();
    hull = block.hull();
    const bool from_before = block.seen_from_before();
    float inverse[2];
    const auto keys = block.as_keys(inverse);
    if (Block::Layout::kKeptAmongValues) __syncthreads();
    block.collect_queries(keys, d_rows, d_values, from_before);
    block.end_values(d_values, row);
    block.end_keys(d_rows, inverse, row);
  }
  block.copy_query_sums();
  block.collect_keys(block.as_queries(), d_rows, hull);
  block.end_queries(d_rows, row);
}

template <int D, int kWarps, int kHalo, int kBlocks, bool kKeep>
void collect_one_round(const BackwardRound& p, int heads, cudaStream_t stream) {
  using Layout = BackwardLayout<D, kWarps * 16, kHalo, kKeep>;
  constexpr const char* kName = "interval_attention_grad";
  const auto& forward = p.args.forward;
  launch_round(
      collect_round<D, kWarps, kHalo, kBlocks, kKeep>,
      grid_for(heads * ceil_div(forward.length, kWarps * 16), 1, kName),
      kWarps * 32, Layout::bytes(p.round, forward.k.data == nullptr), stream, p,
      kName);
}

template <int D>
void collect_all_rounds(const IntervalAttentionGradArgs<bf16>& args,
                        void* workspace, cudaStream_t stream) {
  // What shared memory allows two or three blocks of.
  constexpr int kWarps = 4;
  constexpr int kHalo = D <= 64 ? 64 : 32;
  constexpr int kBlocks = D <= 64 ? 3 : 2;
  // Wide rows leave no room for what could be kept on smaller GPUs.
  constexpr bool kAlways = D <= 64;
  using Keeping = BackwardLayout<D, kWarps * 16, kHalo, true>;
  using Layout = BackwardLayout<D, kWarps * 16, kHalo, kAlways>;
  using Small = BackwardLayout<D, kSmallWarps * 16, kSmallHalo, false>;
  static_assert(Small::bytes(kMaxRounds - 1, false) <= kLeastSharedMemory);
  const BackwardWorkspace cut(args);
  const bool shared = !cut.separate;
  const IntervalAttentionArgs<bf16>& forward = args.forward;
  const int rounds = static_cast<int>(forward.rounds.rounds);
  require_room(Small::bytes(rounds - 1, shared), rounds, D,
               "interval_attention_grad");
  auto* statistics = static_cast<float2*>(workspace);
  auto* scales = static_cast<float*>(workspace) + 2 * cut.rows;
  float* q_sums = scales + cut.rows;
  float* v_sums = q_sums + cut.sums;
  float* k_sums = v_sums + cut.sums;
  BackwardRound p = {args, statistics, scales, q_sums, v_sums, k_sums, 0, 0};
  row_statistics(args, statistics, stream);
  if (shared) inverse_norms(forward, 1, scales, stream);
  const bool keep = fits_shared_memory(Keeping::bytes(rounds - 1, shared));
  for_each_group(forward, [&](int first, int heads) {
    p.first_head = first;
    for (int round = 0; round < rounds; ++round) {
      p.round = round;
      if (keep) {
        collect_one_round<D, kWarps, kHalo, kBlocks, true>(p, heads, stream);
      } else if (fits_shared_memory(Layout::bytes(round, shared))) {
        collect_one_round<D, kWarps, kHalo, kBlocks, kAlways>(p, heads, stream);
      } else {
        collect_one_round<D, kSmallWarps, kSmallHalo, 2, false>(p, heads,
                                                                stream);
      }
    }
  });
}

}  // namespace

int64_t interval_attention_grad_workspace(
    const IntervalAttentionGradArgs<bf16>& args) {
  return BackwardWorkspace(args).floats() * 4;
}

void interval_attention_grad(const IntervalAttentionGradArgs<bf16>& args,
                             void* workspace, void* stream) {
  require_supported(args.forward);
  with_padded_d(args.forward.d_head, [&](auto d) {
    collect_all_rounds<d>(args, workspace, stream_of(stream));
  });
  end_gradients(args, stream_of(stream));
}

}  // namespace reformer::kernels::cuda
