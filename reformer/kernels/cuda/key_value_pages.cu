#include "reformer/kernels/key_value_pages.h"

#include "reformer/kernels/cuda/key_value_rows.cuh"
#include "reformer/kernels/cuda/launch.h"

namespace reformer::kernels::cuda {
namespace {

constexpr int kWarps = 8;

// A warp owns a position of a (row, head), which it reads and writes once. Not
// those whose place a later one takes: warps run in any order.
template <class T>
__global__ void append_keys_kernel(
    const __grid_constant__ AppendKeysArgs<T> args) {
  const int lane = threadIdx.x % 32;
  const int64_t task = blockIdx.x * int64_t{kWarps} + threadIdx.x / 32;
  const int64_t row_head = task / args.length;
  const int64_t i = task % args.length;
  const int64_t row = row_head / args.heads;
  const int64_t head = row_head % args.heads;
  if (row >= args.batch || i >= args.counts[row]) return;
  if (i < args.counts[row] - args.kept) return;
  const auto pages = args.pages.row(row);
  const int64_t position = args.first[row] + i;
  const int d = static_cast<int>(args.d_head);
  write_key(args.k.head(row, head) + i * args.k.row_stride, args.unit_keys, d,
            lane, pages, head, position);
  const T* v = args.v.head(row, head) + i * args.v.row_stride;
  const bool successors = head < args.successor_heads;
  // The first that is kept has no place before it.
  const bool has_place = i > args.counts[row] - args.kept;
  if (successors && position > 0 && has_place) {
    write_value(v, d, lane, pages, head, position - 1);
  }
  if (!successors || i == args.counts[row] - 1) {
    write_value(v, d, lane, pages, head, position);
  }
  if (args.buckets == nullptr) return;
  for (int64_t round = lane; round < pages.shape.rounds; round += 32) {
    pages.buckets(head, position)[round] =
        args.buckets[(row_head * pages.shape.rounds + round) * args.length + i];
  }
}

template <class T>
void append(const AppendKeysArgs<T>& args, void* stream) {
  constexpr const char* kName = "append_keys";
  const int64_t tasks = args.batch * args.heads * args.length;
  if (tasks == 0) return;
  append_keys_kernel<<<grid_for(tasks, kWarps, kName), 32 * kWarps, 0,
                       stream_of(stream)>>>(args);
  check_launch(kName);
}

}  // namespace

void append_keys(const AppendKeysArgs<float>& args, void* stream) {
  append(args, stream);
}
void append_keys(const AppendKeysArgs<Bf16>& args, void* stream) {
  append(args, stream);
}

}  // namespace reformer::kernels::cuda
