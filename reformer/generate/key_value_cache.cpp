#include "reformer/generate/key_value_cache.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kOp = "key_value_cache";

template <class T>
kernels::AppendKeysArgs<T> arguments(const at::Tensor& k, const at::Tensor& v,
                                     const at::Tensor& buckets,
                                     const KeyValueCache& cache) {
  kernels::AppendKeysArgs<T> args{};
  args.k = rows_of<T>(k);
  args.v = rows_of<T>(v);
  if (buckets.defined()) args.buckets = buckets.const_data_ptr<uint16_t>();
  args.pages = cache.pages<T>();
  args.unit_keys = cache.shared_qk();
  args.successor_heads = cache.config().successor_heads;
  args.kept = cache.kept();
  args.batch = cache.batch();
  args.heads = cache.heads();
  args.length = k.size(2);
  args.d_head = cache.d_head();
  return args;
}

template <class T>
void run_on_cpu(kernels::AppendKeysArgs<T> args,
                const std::vector<int64_t>& first,
                const std::vector<int64_t>& counts) {
  args.first = first.data();
  args.counts = counts.data();
  kernels::cpu::append_keys(args);
}

template <class T>
void run_on_cuda(kernels::AppendKeysArgs<T> args, const at::Tensor& k,
                 const std::vector<int64_t>& first,
                 const std::vector<int64_t>& counts) {
  const auto device_first = copied_to(first, k.device());
  const auto device_counts = copied_to(counts, k.device());
  args.first = device_first.const_data_ptr<int64_t>();
  args.counts = device_counts.const_data_ptr<int64_t>();
  const LaunchGuard launch(k);
  kernels::cuda::append_keys(args, launch.stream());
}

void check_buckets(const at::Tensor& buckets, const at::Tensor& k,
                   int64_t rounds) {
  require(buckets.defined() == (rounds > 0), kOp, ": buckets are ",
          rounds > 0 ? "required" : "not kept", " here");
  if (rounds == 0) return;
  check_bucket_shape(kOp, buckets);
  require(buckets.sizes() ==
              at::IntArrayRef({k.size(0), k.size(1), rounds, k.size(2)}),
          kOp, ": buckets must be [", k.size(0), ", ", k.size(1), ", ", rounds,
          ", ", k.size(2), "], got sizes ", buckets.sizes());
}

}  // namespace

KeyValueCache::KeyValueCache(const KeyValueConfig& config)
    : config_(config),
      shape_{config.heads, kernels::page_row_width(config.d_head),
             config.rounds},
      rows_(config.batch),
      all_(static_cast<std::size_t>(std::max<int64_t>(config.batch, 0))),
      lengths_(all_.size(), 0) {
  const bool on_cpu = config.device.is_cpu();
  require(config.type == at::kFloat ||
              config.type == (on_cpu ? at::kDouble : at::kBFloat16),
          kOp, ": float32 or ", on_cpu ? "float64" : "bfloat16",
          " is required, got ", at::toString(config.type));
  require(config.successor_heads >= 0 && config.successor_heads <= config.heads,
          kOp, ": successor_heads must be 0 to ", config.heads, ", got ",
          config.successor_heads);
  if (on_cpu) return;
  arrivals_ = at::zeros({config.batch, config.heads},
                        at::TensorOptions(config.device).dtype(at::kInt));
}

int64_t KeyValueCache::kept() const {
  constexpr int64_t kPage = kernels::kPagePositions;
  if (config_.reach == 0) return std::numeric_limits<int64_t>::max();
  return (config_.reach + kPage - 1) / kPage * kPage;
}

int64_t KeyValueCache::page_bytes() const {
  return shape_.bytes(at::elementSize(config_.type));
}

void KeyValueCache::add_pages(Row& row) {
  auto& pages = row.pages;
  const auto count = static_cast<int64_t>(pages.size());
  const int64_t in_reach = kept() / kernels::kPagePositions;
  if (count >= in_reach) {
    pages.push_back(pages[count - in_reach]);  // out of reach: again
    return;
  }
  // On a CPU as many as there are, up to 16: LibTorch puts large blocks on huge
  // pages, of several small ones the edges stay outside.
  const bool single = config_.reach > 0 || !config_.device.is_cpu();
  const int64_t n = std::clamp<int64_t>(count, 1, single ? 1 : 16);
  row.blocks.push_back(at::empty(
      {n, page_bytes()}, at::TensorOptions(config_.device).dtype(at::kByte)));
  for (int64_t i = 0; i < n; ++i) {
    pages.push_back(row.blocks.back()[i].mutable_data_ptr());
  }
}

void KeyValueCache::use_rows(int64_t rows) {
  require(rows >= 0 && rows <= std::ssize(all_), kOp, ": there are ",
          all_.size(), " rows, not ", rows);
  rows_ = rows;
  lengths_.resize(static_cast<std::size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) lengths_[row] = all_[row].length;
}

void KeyValueCache::take_row(int64_t row, KeyValueCache& one) {
  require(one.all_.size() == 1 && one.config_.device == config_.device &&
              one.config_.type == config_.type &&
              one.config_.reach == config_.reach &&
              one.config_.successor_heads == config_.successor_heads &&
              one.shape_.heads == shape_.heads &&
              one.shape_.width == shape_.width &&
              one.shape_.rounds == shape_.rounds,
          kOp, ": a row is taken of a cache of one row and the same config");
  all_.at(static_cast<std::size_t>(row)) = std::move(one.all_[0]);
  one.all_[0] = {};
  one.use_rows(1);
  table_is_right_ = false;
}

void KeyValueCache::move_row(int64_t from, int64_t to) {
  if (from == to) return;
  all_.at(static_cast<std::size_t>(to)) =
      std::move(all_.at(static_cast<std::size_t>(from)));
  clear_row(from);
}

void KeyValueCache::clear_row(int64_t row) {
  auto& cleared = all_.at(static_cast<std::size_t>(row));
  cleared = {};
  table_is_right_ = false;
  if (config_.device.is_cpu()) return;
  if (!cleared_.defined()) {
    cleared_ = at::zeros({page_bytes()},
                         at::TensorOptions(config_.device).dtype(at::kByte));
  }
  cleared.pages = {cleared_.mutable_data_ptr()};
}

void KeyValueCache::check_counts(const std::vector<int64_t>& counts) const {
  require(static_cast<int64_t>(counts.size()) == batch(), kOp,
          ": a count for each of ", batch(), " rows is required, got ",
          counts.size());
}

// In its place as long as it fits there; returns whether it did not.
bool KeyValueCache::write_table() {
  std::size_t capacity = 1;
  if (table_.defined()) capacity = static_cast<std::size_t>(table_.size(1));
  for (const auto& row : all_) {
    capacity = std::max(capacity, std::bit_ceil(row.pages.size()));
  }
  auto table =
      at::empty({std::ssize(all_), static_cast<int64_t>(capacity)}, at::kLong);
  static_assert(sizeof(void*) == sizeof(int64_t));
  auto* rows = static_cast<void**>(table.mutable_data_ptr());
  for (std::size_t row = 0; row < all_.size(); ++row) {
    const auto& pages = all_[row].pages;
    std::fill(std::copy(pages.begin(), pages.end(), rows + row * capacity),
              rows + (row + 1) * capacity, nullptr);
  }
  const bool moves =
      !table_.defined() || table_.size(1) < static_cast<int64_t>(capacity);
  if (moves) {
    table_ = copied_to(table, config_.device);
  } else {
    copy_into(table_, table);
  }
  table_is_right_ = true;
  return moves;
}

bool KeyValueCache::extend(const std::vector<int64_t>& counts) {
  check_counts(counts);
  for (int64_t i = 0; i < batch(); ++i) {
    auto& row = all_[i];
    while (std::ssize(row.pages) * kernels::kPagePositions <
           row.length + counts[i]) {
      table_is_right_ = false;
      add_pages(row);
    }
  }
  const bool moved = !table_is_right_ && write_table();
  for (int64_t i = 0; i < batch(); ++i) {
    lengths_[i] = all_[i].length += counts[i];
  }
  return moved;
}

void KeyValueCache::check(const at::Tensor& k, const at::Tensor& v,
                          const std::vector<int64_t>& counts,
                          const at::Tensor& buckets) const {
  check_vectors(kOp, "k", k);
  check_like(kOp, "v", v, "k", k);
  require(
      k.size(0) == batch() && k.size(1) == heads() && k.size(3) == d_head() &&
          k.scalar_type() == type() && k.device() == config_.device,
      kOp, ": k must be ", at::toString(type()), " [", batch(), ", ", heads(),
      ", length, ", d_head(), "] on ", config_.device.str(), ", got ",
      at::toString(k.scalar_type()), " ", k.sizes(), " on ", k.device().str());
  check_buckets(buckets, k, config_.rounds);
  check_counts(counts);
  for (const int64_t count : counts) {
    require(count >= 0 && count <= k.size(2), kOp,
            ": counts must be from 0 to the length of k, ", k.size(2), ", got ",
            count);
  }
}

void KeyValueCache::append(const at::Tensor& k, const at::Tensor& v,
                           const std::vector<int64_t>& counts,
                           const at::Tensor& buckets) {
  check(k, v, counts, buckets);
  extend(counts);
  write_checked(k, v, counts, buckets);
}

void KeyValueCache::write(const at::Tensor& k, const at::Tensor& v,
                          const std::vector<int64_t>& counts,
                          const at::Tensor& buckets) {
  check(k, v, counts, buckets);
  for (int64_t row = 0; row < batch(); ++row) {
    require(counts[row] <= lengths_[row], kOp, ": ", counts[row],
            " positions are written of a row that has ", lengths_[row]);
  }
  write_checked(k, v, counts, buckets);
}

void KeyValueCache::write_checked(const at::Tensor& k, const at::Tensor& v,
                                  const std::vector<int64_t>& counts,
                                  const at::Tensor& buckets) {
  auto first = lengths_;
  for (int64_t row = 0; row < batch(); ++row) first[row] -= counts[row];
  const auto keys = with_contiguous_rows(k);
  const auto values = with_contiguous_rows(v);
  const auto ids = buckets.defined() ? buckets.contiguous() : buckets;
  const auto args = [&]<class T>() {
    return arguments<T>(keys, values, ids, *this);
  };
  switch (type()) {
    case at::kDouble:
      run_on_cpu(args.operator()<double>(), first, counts);
      break;
    case at::kBFloat16:
      run_on_cuda(args.operator()<kernels::Bf16>(), k, first, counts);
      break;
    default:
      k.is_cuda() ? run_on_cuda(args.operator()<float>(), k, first, counts)
                  : run_on_cpu(args.operator()<float>(), first, counts);
  }
}

}  // namespace reformer
