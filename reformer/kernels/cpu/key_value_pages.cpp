#include "reformer/kernels/key_value_pages.h"

#include <algorithm>
#include <cmath>

#include "reformer/base/interruption.h"
#include "reformer/base/parallel.h"
#include "reformer/kernels/interval_attention.h"

namespace reformer::kernels::cpu {
namespace {

// In float64: the square of a large fp32 number may not fit fp32.
template <class T>
double inverse_norm(const T* row, int64_t d) {
  double squares = 0;
  for (int64_t c = 0; c < d; ++c) squares += double(row[c]) * double(row[c]);
  const double norm = std::sqrt(squares);
  return norm <= kSmallestKeyNorm ? 0 : 1 / norm;  // NaN stays NaN
}

template <class T>
void write_row(const T* from, double factor, int64_t d, int64_t width, T* to) {
  for (int64_t c = 0; c < d; ++c) to[c] = T(from[c] * factor);
  std::fill(to + d, to + width, T(0));
}

// All positions in order, since one's value may take the place of that before
// it: `stop` is looked at on the way.
template <class T>
void append_head(const AppendKeysArgs<T>& args, int64_t batch, int64_t head,
                 const std::atomic<bool>* stop) {
  constexpr int64_t kBetweenLooks = 4096;
  const auto pages = args.pages.row(batch);
  const T* k = args.k.head(batch, head);
  const T* v = args.v.head(batch, head);
  for (int64_t i = 0; i < args.counts[batch]; ++i) {
    if (i % kBetweenLooks == 0) check_interruption(stop);
    const T* key = k + i * args.k.row_stride;
    const double factor = args.unit_keys ? inverse_norm(key, args.d_head) : 1;
    const int64_t position = args.first[batch] + i;
    write_row(key, factor, args.d_head, pages.shape.width,
              pages.key(head, position));
    const auto write_value = [&](int64_t beside) {
      write_row(v + i * args.v.row_stride, 1, args.d_head, pages.shape.width,
                pages.value(head, beside));
    };
    if (head < args.successor_heads && position > 0) write_value(position - 1);
    write_value(position);
  }
}

template <class T>
void append(const AppendKeysArgs<T>& args) {
  constexpr int64_t kWorthwhile = 1024;  // positions
  const int64_t most = *std::max_element(args.counts, args.counts + args.batch);
  const int64_t heads = args.batch * args.heads;
  const auto* stop = interruption_flag();
  parallel_tasks_if(heads * most >= kWorthwhile, heads, [&](int64_t task) {
    append_head(args, task / args.heads, task % args.heads, stop);
  });
}

}  // namespace

void append_keys(const AppendKeysArgs<float>& args) { append(args); }
void append_keys(const AppendKeysArgs<double>& args) { append(args); }

}  // namespace reformer::kernels::cpu
