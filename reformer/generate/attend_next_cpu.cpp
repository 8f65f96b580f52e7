#include "reformer/generate/attend_next.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "reformer/base/errors.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kOp = "attend_next";

void check(const at::Tensor& q, const KeyValueCache& cache,
           const AttendedPositions& attended) {
  check_vectors(kOp, "q", q);
  check_on_cpu(kOp, "q", q);
  require(q.sizes() == at::IntArrayRef(
                           {cache.batch(), cache.heads(), 1, cache.d_head()}) &&
              q.scalar_type() == cache.type(),
          kOp, ": q must be ", at::toString(cache.type()), " [", cache.batch(),
          ", ", cache.heads(), ", 1, ", cache.d_head(), "], got ",
          at::toString(q.scalar_type()), " ", q.sizes());
  require(static_cast<int64_t>(attended.ranges.size()) == cache.batch() &&
              static_cast<int64_t>(attended.lists.size()) %
                      (cache.batch() * cache.heads()) ==
                  0,
          kOp, ": a range for each of ", cache.batch(),
          " rows and as many lists for each row and head are required, got ",
          attended.ranges.size(), " and ", attended.lists.size());
  for (int64_t row = 0; row < cache.batch(); ++row) {
    const auto [begin, end] = attended.ranges[row];
    const int64_t length = cache.lengths()[row];
    const int64_t oldest = cache.reach() > 0 ? length - cache.reach() : 0;
    require(length >= 1 && begin >= std::max<int64_t>(0, oldest) &&
                begin <= end && end <= length,
            kOp, ": a range must lie within the positions of its row, from ",
            std::max<int64_t>(0, oldest), " to ", length, ", got [", begin,
            ", ", end, ")");
  }
}

template <class T>
void run(const at::Tensor& q, const KeyValueCache& cache,
         const AttendedPositions& attended, const at::Tensor& output) {
  auto newest = cache.lengths();
  for (auto& position : newest) --position;
  kernels::cpu::AttendNextArgs<T> args{};
  args.q = rows_of<T>(q);
  args.pages = cache.pages<T>();
  args.position = newest.data();
  args.ranges = attended.ranges.data();
  args.lists = attended.lists.data();
  args.batch = cache.batch();
  args.heads = cache.heads();
  args.d_head = cache.d_head();
  args.n_lists =
      static_cast<int64_t>(attended.lists.size()) / (args.batch * args.heads);
  args.lists_together = attended.lists_together;
  args.scale = cache.shared_qk() ? 1 : 1 / std::sqrt(double(args.d_head));
  args.output = mutable_rows_of<T>(output);
  kernels::cpu::attend_next(args);
}

}  // namespace

at::Tensor attend_next(const at::Tensor& q, const KeyValueCache& cache,
                       const AttendedPositions& attended) {
  check(q, cache, attended);
  auto output = at::empty(q.sizes(), q.options());
  const auto rows = with_contiguous_rows(q);
  cache.type() == at::kDouble ? run<double>(rows, cache, attended, output)
                              : run<float>(rows, cache, attended, output);
  return output;
}

}  // namespace reformer
