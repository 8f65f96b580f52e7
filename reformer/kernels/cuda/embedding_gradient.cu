#include "reformer/kernels/embedding_gradient.h"

#include "reformer/kernels/cuda/launch.h"

// The lookups, sorted by the row they read, are cut into pieces of 32. A warp
// owns a piece and 128 columns: it adds up the runs of equal rows in it. A run
// within the piece goes to the table at once, for nobody else has that row; one
// that crosses its borders is kept, and a second kernel adds up the parts of
// such a run in their order. So pieces and order follow from the indices alone:
// the same bits every time, on every GPU. d is read once.
namespace reformer::kernels::cuda {
namespace {

constexpr int kPiece = 32;  // a lane knows one lookup each
constexpr int kLaneColumns = 4;
constexpr int kColumns = 32 * kLaneColumns;
constexpr int kWarps = 4;
constexpr int kTogether = 8;  // rows of d on their way at once
constexpr unsigned kAll = 0xffffffffu;

__device__ int64_t row_at(const EmbeddingGradientArgs& args, int64_t place) {
  return args.indices[args.order[place]];
}

// A warp's piece and columns.
struct Piece {
  __device__ explicit Piece(const EmbeddingGradientArgs& args)
      : number(blockIdx.x * int64_t{kWarps} + threadIdx.x / 32),
        begin(number * kPiece),
        end(min(begin + kPiece, args.count)),
        column(blockIdx.y * int64_t{kColumns} + threadIdx.x % 32) {}

  int64_t number;
  int64_t begin;  // places
  int64_t end;
  int64_t column;  // the lane's first; the others are 32 apart
};

// Whether places on either side of a border are lookups of the same row.
__device__ bool crosses(const EmbeddingGradientArgs& args, int64_t border) {
  return border > 0 && border < args.count &&
         row_at(args, border - 1) == row_at(args, border);
}

// Where the part of a run is kept that comes from the piece before (0), or that
// goes on in the next one only (1).
__device__ float* kept(const EmbeddingGradientArgs& args, int64_t piece,
                       int which) {
  return args.partial + (2 * piece + which) * args.width;
}

__device__ void add_to_row(const EmbeddingGradientArgs& args, int64_t row,
                           int64_t column, const float (&sums)[kLaneColumns]) {
#pragma unroll
  for (int i = 0; i < kLaneColumns; ++i) {
    const int64_t at = column + 32 * i;
    if (at < args.width)
      args.sum[row * args.width + at] += args.scale * sums[i];
  }
}

__device__ void keep(float* to, const EmbeddingGradientArgs& args,
                     int64_t column, const float (&sums)[kLaneColumns]) {
#pragma unroll
  for (int i = 0; i < kLaneColumns; ++i) {
    const int64_t at = column + 32 * i;
    if (at < args.width) to[at] = sums[i];
  }
}

__device__ void load(const float* from, int64_t width, int64_t column,
                     float (&values)[kLaneColumns]) {
#pragma unroll
  for (int i = 0; i < kLaneColumns; ++i) {
    const int64_t at = column + 32 * i;
    values[i] = at < width ? from[at] : 0;
  }
}

__global__ void __launch_bounds__(32 * kWarps)
    sum_pieces_kernel(EmbeddingGradientArgs args) {
  const Piece piece(args);
  if (piece.begin >= args.count) return;
  const int lane = threadIdx.x % 32;
  const int count = static_cast<int>(piece.end - piece.begin);
  const int64_t number = args.order[piece.begin + min(lane, count - 1)];
  const int64_t looked_up = args.indices[number];
  const bool from_before = crosses(args, piece.begin);
  const bool goes_on = crosses(args, piece.end);

  float sums[kLaneColumns] = {};
  bool first = true;
  int64_t row = __shfl_sync(kAll, looked_up, 0);
  const auto finish = [&](bool last) {
    if (first && from_before) {
      keep(kept(args, piece.number, 0), args, piece.column, sums);
    } else if (last && goes_on) {
      keep(kept(args, piece.number, 1), args, piece.column, sums);
    } else {
      add_to_row(args, row, piece.column, sums);
    }
    first = false;
  };
  for (int at = 0; at < count; at += kTogether) {
    float values[kTogether][kLaneColumns];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int64_t from = __shfl_sync(kAll, number, at + i);
      load(args.d + from * args.d_stride, at + i < count ? args.width : 0,
           piece.column, values[i]);
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      // Beyond the last lookup: its row again, and zeros.
      const int64_t next = __shfl_sync(kAll, looked_up, at + i);
      if (next != row) {
        finish(/*last=*/false);
        row = next;
        for (float& sum : sums) sum = 0;
      }
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) sums[c] += values[i][c];
    }
  }
  finish(/*last=*/true);
}
static_assert(kPiece == 32 && kPiece % kTogether == 0);

// The warp of the piece in which a run begins that crosses its end.
__global__ void __launch_bounds__(32 * kWarps)
    join_pieces_kernel(EmbeddingGradientArgs args) {
  const Piece piece(args);
  if (piece.begin >= args.count || !crosses(args, piece.end)) return;
  const int64_t row = row_at(args, piece.end - 1);
  if (piece.begin > 0 && row_at(args, piece.begin - 1) == row) return;
  const int lane = threadIdx.x % 32;
  float sums[kLaneColumns];
  load(kept(args, piece.number, 1), args.width, piece.column, sums);
  for (int64_t next = piece.number + 1;; next += 32) {
    const int64_t place = (next + lane) * kPiece;
    const unsigned same =
        __ballot_sync(kAll, place < args.count && row_at(args, place) == row);
    const int parts = same == kAll ? 32 : __ffs(~same) - 1;
#pragma unroll 8
    for (int i = 0; i < parts; ++i) {
      float part[kLaneColumns];
      load(kept(args, next + i, 0), args.width, piece.column, part);
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) sums[c] += part[c];
    }
    if (parts < 32) break;
  }
  add_to_row(args, row, piece.column, sums);
}

}  // namespace

int64_t embedding_gradient_partials(int64_t count, int64_t width) {
  return ceil_div(count, kPiece) * 2 * width;
}

void embedding_gradient(const EmbeddingGradientArgs& args, void* stream) {
  if (args.count == 0 || args.width == 0) return;
  constexpr const char* kName = "embedding_gradient";
  dim3 grid = grid_for(ceil_div(args.count, kPiece), kWarps, kName);
  grid.y = static_cast<unsigned>(ceil_div(args.width, kColumns));
  sum_pieces_kernel<<<grid, 32 * kWarps, 0, stream_of(stream)>>>(args);
  check_launch("embedding_gradient: pieces");
  join_pieces_kernel<<<grid, 32 * kWarps, 0, stream_of(stream)>>>(args);
  check_launch("embedding_gradient: runs that cross pieces");
}

}  // namespace reformer::kernels::cuda
