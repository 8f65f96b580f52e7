#include "reformer/kernels/rotary.h"

#include <algorithm>

#include "reformer/base/parallel.h"

namespace reformer::kernels::cpu {
namespace {

constexpr int64_t kPositions = 64;  // of a task

template <class T>
void turn_position(const RotaryArgs<T>& args, const double* radians,
                   int64_t batch, int64_t row) {
  const int64_t position = (args.first ? args.first[batch] : 0) + row;
  T cosine[kMaxRotaryPairs];
  T sine[kMaxRotaryPairs];
  for (int64_t c = 0; c < args.pairs; ++c) {
    const double angle = double(position) * radians[c];
    cosine[c] = T(std::cos(angle));
    sine[c] = T(args.back ? -std::sin(angle) : std::sin(angle));
  }
  for (int64_t head = 0; head < args.heads; ++head) {
    const T* x = args.x.head(batch, head) + row * args.x.row_stride;
    T* y = args.y.head(batch, head) + row * args.y.row_stride;
    const int64_t pairs = head < args.first_head ? 0 : args.pairs;
    for (int64_t c = 0; c < pairs; ++c) {
      y[c] = x[c] * cosine[c] - x[c + pairs] * sine[c];
      y[c + pairs] = x[c] * sine[c] + x[c + pairs] * cosine[c];
    }
    std::copy(x + 2 * pairs, x + args.d_head, y + 2 * pairs);
  }
}

template <class T>
void turn(const RotaryArgs<T>& args) {
  double radians[kMaxRotaryPairs];
  for (int64_t c = 0; c < args.pairs; ++c) {
    radians[c] = radians_of_pair(c, args.pairs);
  }
  const int64_t tasks = (args.length + kPositions - 1) / kPositions;
  parallel_tasks(args.batch * tasks, [&](int64_t task) {
    const int64_t begin = task % tasks * kPositions;
    const int64_t end = std::min(begin + kPositions, args.length);
    for (int64_t row = begin; row < end; ++row) {
      turn_position(args, radians, task / tasks, row);
    }
  });
}

}  // namespace

void rotary(const RotaryArgs<float>& args) { turn(args); }
void rotary(const RotaryArgs<double>& args) { turn(args); }

}  // namespace reformer::kernels::cpu
