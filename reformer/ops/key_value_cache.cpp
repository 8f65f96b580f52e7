#include "reformer/ops/key_value_cache.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "reformer/core/errors.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kOp = "key_value_cache";

template <class T>
void run(const at::Tensor& k, const at::Tensor& v,
         const std::vector<int64_t>& first, const std::vector<int64_t>& counts,
         const KeyValueCache& cache) {
  const auto pages = cache.pages<T>();
  kernels::AppendKeysArgs<T> args{};
  args.k = rows_of<T>(k);
  args.v = rows_of<T>(v);
  args.pages = pages.data();
  args.first = first.data();
  args.counts = counts.data();
  args.unit_keys = cache.shared_qk();
  args.batch = cache.batch();
  args.heads = cache.heads();
  args.d_head = cache.d_head();
  kernels::cpu::append_keys(args);
}

}  // namespace

KeyValueCache::KeyValueCache(int64_t batch, int64_t heads, int64_t d_head,
                             bool shared_qk, at::ScalarType type, int64_t reach)
    : heads_(heads),
      d_head_(d_head),
      shared_qk_(shared_qk),
      type_(type),
      reach_(reach),
      lengths_(batch, 0),
      blocks_(batch),
      pages_(batch) {
  require(type == at::kFloat || type == at::kDouble, kOp,
          ": float32 or float64 is required, got ", at::toString(type));
}

void KeyValueCache::make_room(int64_t row, int64_t length) {
  auto& pages = pages_[row];
  const auto count = [&] { return static_cast<int64_t>(pages.size()); };
  const int64_t in_reach =
      (reach_ + kernels::kPagePositions - 1) / kernels::kPagePositions;
  while (count() * kernels::kPagePositions < length) {
    if (reach_ > 0 && count() >= in_reach) {
      pages.push_back(pages[count() - in_reach]);  // out of reach: again
      continue;
    }
    // As many as there are, up to 16: LibTorch puts large blocks on huge pages,
    // of several small ones the edges stay outside.
    const int64_t n = std::clamp<int64_t>(count(), 1, reach_ > 0 ? 1 : 16);
    blocks_[row].push_back(at::empty({n, heads_, kernels::kPagePositions, 2,
                                      kernels::page_row_width(d_head_)},
                                     type_));
    for (int64_t i = 0; i < n; ++i) {
      pages.push_back(blocks_[row].back()[i].mutable_data_ptr());
    }
  }
}

void KeyValueCache::append(const at::Tensor& k, const at::Tensor& v,
                           const std::vector<int64_t>& counts) {
  check_vectors(kOp, "k", k);
  check_on_cpu(kOp, "k", k);
  check_like(kOp, "v", v, "k", k);
  require(k.size(0) == batch() && k.size(1) == heads_ && k.size(3) == d_head_ &&
              k.scalar_type() == type_,
          kOp, ": k must be ", at::toString(type_), " [", batch(), ", ", heads_,
          ", length, ", d_head_, "], got ", at::toString(k.scalar_type()), " ",
          k.sizes());
  require(static_cast<int64_t>(counts.size()) == batch(), kOp,
          ": a count for each of ", batch(), " rows is required, got ",
          counts.size());
  const auto first = lengths_;
  for (int64_t row = 0; row < batch(); ++row) {
    require(counts[row] >= 0 && counts[row] <= k.size(2), kOp,
            ": counts must be from 0 to the length of k, ", k.size(2), ", got ",
            counts[row]);
    make_room(row, first[row] + counts[row]);
  }
  const auto keys = with_contiguous_rows(k);
  const auto values = with_contiguous_rows(v);
  type_ == at::kDouble ? run<double>(keys, values, first, counts, *this)
                       : run<float>(keys, values, first, counts, *this);
  for (int64_t row = 0; row < batch(); ++row) lengths_[row] += counts[row];
}

template <class T>
std::vector<kernels::KeyValuePages<T>> KeyValueCache::pages() const {
  std::vector<kernels::KeyValuePages<T>> views;
  for (const auto& pages : pages_) {
    views.push_back({pages.data(), kernels::page_row_width(d_head_)});
  }
  return views;
}

template std::vector<kernels::KeyValuePages<float>> KeyValueCache::pages()
    const;
template std::vector<kernels::KeyValuePages<double>> KeyValueCache::pages()
    const;

}  // namespace reformer
