#include "reformer/kernels/adafactor.h"

#include <type_traits>

#include "reformer/kernels/cuda/launch.h"
#include "reformer/kernels/cuda/reduce.cuh"

// All parameters are cut into tiles of 32 rows by 256 columns, a block each.
// Six launches whatever the number of parameters, sums always in the same
// order:
//
//   1 squares   a tile's sums of g^2 along its rows and columns   reads g
//   2 moments   r and c from the tiles' sums, a thread each
//   3 means     mean(r), a block for each matrix
//   4 updates   a tile's sums of y^2 and w^2                      reads g, w
//   5 scales    the factor of y, a block for each parameter
//   6 apply     w -= scale y                        reads g, w, writes w
namespace reformer::kernels::cuda {
namespace {

constexpr int kTileRows = 32;
constexpr int kTileColumns = 256;  // also the threads of a block
constexpr int kWarps = kTileColumns / 32;
constexpr float kEpsilon = kAdafactorEpsilon;

struct Totals {
  int64_t tiles = 0;
  int64_t row_sums = 0;
  int64_t column_sums = 0;
  int64_t moments = 0;
  int64_t matrices = 0;
};

Totals& operator+=(Totals& t, const AdafactorTensor& x) {
  t.tiles += x.matrices * x.row_tiles * x.column_tiles;
  t.row_sums += x.matrices * x.rows * x.column_tiles;
  t.column_sums += x.matrices * x.row_tiles * x.columns;
  t.moments += x.matrices * (x.rows + x.columns);
  t.matrices += x.matrices;
  return t;
}

Totals totals_of(const AdafactorTensor* tensors, int64_t count) {
  Totals totals;
  for (int64_t i = 0; i < count; ++i) totals += tensors[i];
  return totals;
}

struct Workspace {
  float* row_sums;     // [matrices, rows, column_tiles] of each tensor
  float* column_sums;  // [matrices, row_tiles, columns] of each tensor
  float* means;        // [matrices] of each tensor: of r
  double2* tile_sums;  // [tiles]: of y^2 and of w^2
  float* scales;       // [count]
};

// Lays it out from `base` on; returns the bytes.
int64_t lay_out(const Totals& totals, int64_t count, char* base, Workspace& w) {
  int64_t at = 0;
  const auto take = [&](auto*& pointer, int64_t n) {
    using T = std::remove_reference_t<decltype(*pointer)>;
    pointer = reinterpret_cast<T*>(base + at);
    at += ceil_div(n * int64_t{sizeof(T)}, 256) * 256;
  };
  take(w.row_sums, totals.row_sums);
  take(w.column_sums, totals.column_sums);
  take(w.means, totals.matrices);
  take(w.tile_sums, totals.tiles);
  take(w.scales, count);
  return at;
}

// The last tensor whose `first` is at most `at`.
template <int64_t AdafactorTensor::*first>
__device__ int64_t tensor_at(const AdafactorTensor* tensors, int64_t count,
                             int64_t at) {
  int64_t low = 0;
  int64_t high = count;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (tensors[middle].*first <= at ? low : high) = middle;
  }
  return low;
}

struct Tile {
  AdafactorTensor x;
  int64_t tensor;
  int64_t matrix;
  int64_t row_tile;
  int64_t column_tile;
  int64_t column;  // of this thread; may be outside

  __device__ Tile(const AdafactorTensor* tensors, int64_t count) {
    tensor =
        tensor_at<&AdafactorTensor::first_tile>(tensors, count, blockIdx.x);
    x = tensors[tensor];
    int64_t at = blockIdx.x - x.first_tile;
    column_tile = at % x.column_tiles;
    at /= x.column_tiles;
    row_tile = at % x.row_tiles;
    matrix = at / x.row_tiles;
    column = column_tile * kTileColumns + threadIdx.x;
  }
  __device__ bool inside() const { return column < x.columns; }
  __device__ int64_t first_row() const { return row_tile * kTileRows; }
  __device__ int rows() const {
    const int64_t left = x.rows - first_row();
    return left < kTileRows ? int(left) : kTileRows;
  }
  __device__ int64_t element(int row) const {
    return (matrix * x.rows + first_row() + row) * x.columns + column;
  }
};

__global__ void squares_kernel(const AdafactorTensor* tensors, int64_t count,
                               Workspace w) {
  __shared__ float sums[kTileRows][kWarps];
  const Tile tile(tensors, count);
  float column_sum = 0;
  for (int row = 0; row < tile.rows(); ++row) {
    const float g = tile.inside() ? tile.x.g[tile.element(row)] : 0.0f;
    column_sum += g * g;
    const float sum = warp_sum(g * g);
    if (threadIdx.x % 32 == 0) sums[row][threadIdx.x / 32] = sum;
  }
  if (tile.inside()) {
    w.column_sums[tile.x.first_column_sum +
                  (tile.matrix * tile.x.row_tiles + tile.row_tile) *
                      tile.x.columns +
                  tile.column] = column_sum;
  }
  __syncthreads();
  if (threadIdx.x < tile.rows()) {
    float sum = 0;
    for (int warp = 0; warp < kWarps; ++warp) sum += sums[threadIdx.x][warp];
    const int64_t row =
        tile.matrix * tile.x.rows + tile.first_row() + threadIdx.x;
    w.row_sums[tile.x.first_row_sum + row * tile.x.column_tiles +
               tile.column_tile] = sum;
  }
}

// 1 - beta2 is rounded once: 1 - float(beta2) would lose digits.
struct Decay {
  float keep;
  float gain;
};

__device__ void update_moment(float* moment, float sum, int64_t n,
                              Decay decay) {
  *moment = decay.keep * *moment + decay.gain * (sum / float(n) + kEpsilon);
}

__global__ void moments_kernel(const AdafactorTensor* tensors, int64_t count,
                               int64_t moments, Workspace w, Decay decay) {
  const int64_t entry = blockIdx.x * int64_t{kTileColumns} + threadIdx.x;
  if (entry >= moments) return;
  const AdafactorTensor x =
      tensors[tensor_at<&AdafactorTensor::first_moment>(tensors, count, entry)];
  const int64_t at = entry - x.first_moment;
  float sum = 0;
  if (at < x.matrices * x.rows) {
    if (x.r == nullptr) return;
    const float* sums = w.row_sums + x.first_row_sum + at * x.column_tiles;
    for (int64_t i = 0; i < x.column_tiles; ++i) sum += sums[i];
    update_moment(x.r + at, sum, x.columns, decay);
    return;
  }
  const int64_t column = at - x.matrices * x.rows;
  const int64_t matrix = column / x.columns;
  const float* sums = w.column_sums + x.first_column_sum +
                      matrix * x.row_tiles * x.columns + column % x.columns;
  for (int64_t i = 0; i < x.row_tiles; ++i) sum += sums[i * x.columns];
  update_moment(x.c + column, sum, x.rows, decay);
}

// The sum over the block, in thread 0.
__device__ double block_sum(double x) {
  __shared__ double sums[kWarps];
  const double sum = warp_sum(x);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  double total = 0;
  for (int warp = 0; warp < kWarps; ++warp) total += sums[warp];
  __syncthreads();
  return total;
}

__global__ void means_kernel(const AdafactorTensor* tensors, int64_t count,
                             Workspace w) {
  const AdafactorTensor x = tensors[tensor_at<&AdafactorTensor::first_matrix>(
      tensors, count, blockIdx.x)];
  if (x.r == nullptr) return;
  const int64_t matrix = blockIdx.x - x.first_matrix;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < x.rows; i += kTileColumns) {
    sum += x.r[matrix * x.rows + i];
  }
  const double total = block_sum(sum);
  if (threadIdx.x == 0) w.means[blockIdx.x] = float(total / double(x.rows));
}

// y of this thread's column: g / sqrt(r c / mean(r)).
struct Update {
  const Tile& tile;
  float column_factor;
  float mean;

  __device__ Update(const Tile& t, const Workspace& w) : tile(t) {
    column_factor =
        rsqrtf(tile.x.c[tile.matrix * tile.x.columns + tile.column]);
    mean = tile.x.r ? w.means[tile.x.first_matrix + tile.matrix] : 1.0f;
  }
  __device__ float operator()(int row, float g) const {
    if (tile.x.r == nullptr) return g * column_factor;
    const float r =
        tile.x.r[tile.matrix * tile.x.rows + tile.first_row() + row];
    // Roots first: the quotient r / mean may be below what float32 holds.
    return g * (rsqrtf(r) * sqrtf(mean)) * column_factor;
  }
};

__global__ void updates_kernel(const AdafactorTensor* tensors, int64_t count,
                               Workspace w) {
  const Tile tile(tensors, count);
  double sum_y = 0;
  double sum_w = 0;
  if (tile.inside()) {
    const Update update(tile, w);
    for (int row = 0; row < tile.rows(); ++row) {
      const int64_t at = tile.element(row);
      const float y = update(row, tile.x.g[at]);
      const float value = tile.x.w[at];
      sum_y += double(y) * y;
      sum_w += double(value) * value;
    }
  }
  const double total_y = block_sum(sum_y);
  const double total_w = block_sum(sum_w);
  if (threadIdx.x == 0) w.tile_sums[blockIdx.x] = {total_y, total_w};
}

__global__ void scales_kernel(const AdafactorTensor* tensors, Workspace w,
                              double learning_rate) {
  const AdafactorTensor x = tensors[blockIdx.x];
  const int64_t tiles = x.matrices * x.row_tiles * x.column_tiles;
  double sum_y = 0;
  double sum_w = 0;
  for (int64_t i = threadIdx.x; i < tiles; i += kTileColumns) {
    const double2 sums = w.tile_sums[x.first_tile + i];
    sum_y += sums.x;
    sum_w += sums.y;
  }
  const double total_y = block_sum(sum_y);
  const double total_w = block_sum(sum_w);
  if (threadIdx.x != 0) return;
  const double n = double(x.matrices) * double(x.rows) * double(x.columns);
  const double size = fmax(sqrt(total_w / n), kAdafactorSmallestScale);
  w.scales[blockIdx.x] =
      float(learning_rate * size / fmax(1.0, sqrt(total_y / n)));
}

__global__ void apply_kernel(const AdafactorTensor* tensors, int64_t count,
                             Workspace w) {
  const Tile tile(tensors, count);
  if (!tile.inside()) return;
  const Update update(tile, w);
  const float scale = w.scales[tile.tensor];
  for (int row = 0; row < tile.rows(); ++row) {
    const int64_t at = tile.element(row);
    tile.x.w[at] -= scale * update(row, tile.x.g[at]);
  }
}

}  // namespace

int64_t adafactor_plan(AdafactorTensor* tensors, int64_t count) {
  Totals totals;
  for (int64_t i = 0; i < count; ++i) {
    auto& x = tensors[i];
    x.row_tiles = ceil_div(x.rows, kTileRows);
    x.column_tiles = ceil_div(x.columns, kTileColumns);
    x.first_tile = totals.tiles;
    x.first_row_sum = totals.row_sums;
    x.first_column_sum = totals.column_sums;
    x.first_moment = totals.moments;
    x.first_matrix = totals.matrices;
    totals += x;
  }
  Workspace unused{};
  return lay_out(totals, count, nullptr, unused);
}

void adafactor(const AdafactorArgs& args, void* workspace, void* stream) {
  if (args.count == 0) return;
  const Totals totals = totals_of(args.tensors, args.count);
  Workspace w{};
  lay_out(totals, args.count, static_cast<char*>(workspace), w);
  const auto* x = args.device_tensors;
  const int64_t n = args.count;
  const auto blocks = [](int64_t count) {
    return grid_for(count, 1, "adafactor");
  };
  const auto s = stream_of(stream);
  squares_kernel<<<blocks(totals.tiles), kTileColumns, 0, s>>>(x, n, w);
  check_launch("adafactor: squares");
  moments_kernel<<<grid_for(totals.moments, kTileColumns, "adafactor"),
                   kTileColumns, 0, s>>>(
      x, n, totals.moments, w, {float(args.beta2), float(1 - args.beta2)});
  check_launch("adafactor: moments");
  means_kernel<<<blocks(totals.matrices), kTileColumns, 0, s>>>(x, n, w);
  check_launch("adafactor: means");
  updates_kernel<<<blocks(totals.tiles), kTileColumns, 0, s>>>(x, n, w);
  check_launch("adafactor: updates");
  scales_kernel<<<blocks(n), kTileColumns, 0, s>>>(x, w, args.learning_rate);
  check_launch("adafactor: scales");
  apply_kernel<<<blocks(totals.tiles), kTileColumns, 0, s>>>(x, n, w);
  check_launch("adafactor: apply");
}

}  // namespace reformer::kernels::cuda
