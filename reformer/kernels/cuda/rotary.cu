#include "reformer/kernels/rotary.h"

#include "reformer/kernels/cuda/eight.cuh"
#include "reformer/kernels/cuda/launch.h"

// A thread owns a pair of columns of one position, whose angle it computes once
// for all heads; neighbours have neighbouring pairs. Everything that turns is
// read and written once.
namespace reformer::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct Turns {
  double of_pair[kMaxRotaryPairs];  // radians a position / 2 pi
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    rotary_kernel(const __grid_constant__ RotaryArgs<T> args,
                  const __grid_constant__ Turns turns) {
  const int64_t task = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  const int64_t pair = task % args.pairs;
  const int64_t row = task / args.pairs % args.length;
  const int64_t batch = task / args.pairs / args.length;
  if (batch >= args.batch) return;
  const int64_t position =
      (args.first != nullptr ? args.first[batch] : 0) + row;
  // In float64, whole turns taken away: a float knows no angle of a million.
  const double turned = double(position) * turns.of_pair[pair];
  const auto part = static_cast<float>(turned - rint(turned));
  float sine;
  float cosine;
  sincospif(2 * part, &sine, &cosine);
  if (args.back) sine = -sine;
  for (int64_t head = args.first_head; head < args.heads; ++head) {
    T* x = args.x.head(batch, head) + row * args.x.row_stride + pair;
    T* y = x + args.pairs;
    const float a = to_float(*x);
    const float b = to_float(*y);
    store(x, a * cosine - b * sine);
    store(y, a * sine + b * cosine);
  }
}

template <class T>
void turn(const RotaryArgs<T>& args, void* stream) {
  constexpr const char* kName = "rotary";
  constexpr double kTwoPi = 6.283185307179586;
  const int64_t tasks = args.batch * args.length * args.pairs;
  if (tasks == 0) return;
  Turns turns{};
  for (int64_t c = 0; c < args.pairs; ++c) {
    turns.of_pair[c] = radians_of_pair(c, args.pairs) / kTwoPi;
  }
  rotary_kernel<<<grid_for(tasks, kThreads, kName), kThreads, 0,
                  stream_of(stream)>>>(args, turns);
  check_launch(kName);
}

}  // namespace

void rotary(const RotaryArgs<float>& args, void* stream) { turn(args, stream); }
void rotary(const RotaryArgs<Bf16>& args, void* stream) { turn(args, stream); }

}  // namespace reformer::kernels::cuda
