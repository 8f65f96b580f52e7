#include "reformer/generate/huggingface_cache.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "reformer/device/device.h"

namespace reformer {
namespace {

constexpr int64_t kNobody = -1;

}  // namespace

HuggingfaceCache::HuggingfaceCache(const HuggingfaceLsh& lsh,
                                   const HuggingfaceCacheConfig& config)
    : lsh_(lsh),
      config_(config),
      rows_(static_cast<std::size_t>(config.batch)) {
  for (auto& row : rows_) row = empty_row();
}

HuggingfaceCache::Row HuggingfaceCache::empty_row() const {
  Row row;
  row.rounds.resize(static_cast<std::size_t>(config_.heads * config_.rounds));
  return row;
}

void HuggingfaceCache::take_row(int64_t row, HuggingfaceCache& one) {
  rows_[static_cast<std::size_t>(row)] = std::move(one.rows_[0]);
}

void HuggingfaceCache::move_row(int64_t from, int64_t to) {
  if (from == to) return;
  rows_[static_cast<std::size_t>(to)] =
      std::move(rows_[static_cast<std::size_t>(from)]);
  clear_row(from);
}

void HuggingfaceCache::clear_row(int64_t row) {
  rows_[static_cast<std::size_t>(row)] = empty_row();
}

// Room grows by doubling: each position is moved once or twice at most.
void HuggingfaceCache::append(Row& row, const at::Tensor& k,
                              const at::Tensor& v) {
  const int64_t n = k.size(1);
  const int64_t room = row.k.defined() ? row.k.size(1) : 0;
  if (row.length + n > room) {
    constexpr int64_t kLeast = 64;
    const int64_t more = std::max({2 * room, row.length + n, kLeast});
    const auto grown = [&](const at::Tensor& old) {
      auto larger =
          at::empty({config_.heads, more, config_.d_head}, k.options());
      if (row.length > 0) {
        larger.narrow(1, 0, row.length).copy_(old.narrow(1, 0, row.length));
      }
      return larger;
    };
    row.k = grown(row.k);
    row.v = grown(row.v);
  }
  row.k.narrow(1, row.length, n).copy_(k);
  row.v.narrow(1, row.length, n).copy_(v);
  row.length += n;
}

at::Tensor HuggingfaceCache::read(const at::Tensor& qk, const at::Tensor& v,
                                  const at::Tensor& buckets,
                                  const std::vector<int64_t>& counts) {
  const auto ids = buckets.cpu().contiguous();
  auto output = at::zeros(qk.sizes(), qk.options());
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    auto& row = rows_[r];
    const auto at = static_cast<int64_t>(r);
    const auto own = [&](const at::Tensor& x, int64_t dim) {
      return x.narrow(0, at, 1).narrow(dim, 0, counts[r]);
    };
    const auto rows = own(qk, 2);
    output.narrow(0, at, 1)
        .narrow(2, 0, counts[r])
        .copy_(
            huggingface_lsh_attention(rows, own(v, 2), own(buckets, 3), lsh_));
    append(row, huggingface_keys(rows[0]), own(v, 2)[0]);
    for (std::size_t i = 0; i < row.rounds.size(); ++i) {
      auto& sorted = row.rounds[i];
      const uint16_t* id =
          ids.const_data_ptr<uint16_t>() +
          (at * config_.heads * config_.rounds + int64_t(i)) * ids.size(3);
      sorted.positions.resize(static_cast<std::size_t>(counts[r]));
      std::iota(sorted.positions.begin(), sorted.positions.end(), 0);
      std::stable_sort(sorted.positions.begin(), sorted.positions.end(),
                       [&](int32_t a, int32_t b) { return id[a] < id[b]; });
      sorted.buckets.clear();
      for (const int32_t position : sorted.positions) {
        sorted.buckets.push_back(id[position]);
      }
    }
  }
  return output;
}

at::Tensor HuggingfaceCache::step(const at::Tensor& qk, const at::Tensor& v,
                                  const at::Tensor& buckets) {
  const auto ids = buckets.cpu().contiguous();  // [batch, heads, rounds, 1]
  std::vector<at::Tensor> outputs;
  for (std::size_t r = 0; r < static_cast<std::size_t>(qk.size(0)); ++r) {
    auto& row = rows_[r];
    const auto at = static_cast<int64_t>(r);
    append(row, huggingface_keys(qk[at]), v[at]);
    std::vector<int64_t> places;  // [heads, rounds]: the new position's
    for (std::size_t i = 0; i < row.rounds.size(); ++i) {
      auto& sorted = row.rounds[i];
      const uint16_t id =
          ids.const_data_ptr<uint16_t>()[r * row.rounds.size() + i];
      const auto after =
          std::upper_bound(sorted.buckets.begin(), sorted.buckets.end(), id);
      const auto place = after - sorted.buckets.begin();
      places.push_back(place);
      sorted.buckets.insert(after, id);
      sorted.positions.insert(sorted.positions.begin() + place,
                              static_cast<int32_t>(row.length - 1));
    }
    outputs.push_back(attend(row, qk[at], places));
  }
  return at::stack(outputs);
}

// The last position of the row: what its places in the sorted rounds let it
// see, two chunks of each.
at::Tensor HuggingfaceCache::attend(const Row& row, const at::Tensor& q,
                                    const std::vector<int64_t>& places) const {
  const int64_t own = row.length - 1;
  if (lsh_.sees_all(row.length)) {
    const auto all = [&](const at::Tensor& x) {
      return x.narrow(1, 0, row.length);
    };
    auto itself =
        at::zeros({config_.heads, row.length}, q.options().dtype(at::kBool));
    const auto hidden = at::zeros_like(itself);
    itself.select(1, own).fill_(true);
    return huggingface_attend_next(q, all(row.k), all(row.v), hidden, itself);
  }
  const int64_t m = lsh_.chunk_length;
  const int64_t last_chunk = lsh_.padded(row.length) - m;
  auto seen = at::empty({config_.heads, config_.rounds * 2 * m}, at::kLong);
  int64_t* to = seen.mutable_data_ptr<int64_t>();
  // The positions at m places of a round; padding stands behind the last.
  const auto put = [&](const SortedRound& round, int64_t first) {
    for (int64_t place = first; place < first + m; ++place) {
      *to++ = place < row.length
                  ? int64_t{round.positions[static_cast<std::size_t>(place)]}
                  : kNobody;
    }
  };
  for (std::size_t i = 0; i < row.rounds.size(); ++i) {
    const int64_t chunk = places[i] / m * m;
    const auto rounds = static_cast<std::size_t>(config_.rounds);
    const std::size_t before = i % rounds == 0 ? i + rounds - 1 : i - 1;
    if (chunk > 0) {
      put(row.rounds[i], chunk - m);
    } else {
      put(row.rounds[before], last_chunk);
    }
    put(row.rounds[i], chunk);
  }
  const auto positions = copied_to(seen, config_.device);
  const int64_t room = row.k.size(1);
  const auto first = at::arange(config_.heads, positions.options()) * room;
  const auto rows = (positions.clamp_min(0) + first.unsqueeze(1)).flatten();
  const auto at_positions = [&](const at::Tensor& x) {
    return x.view({-1, config_.d_head})
        .index_select(0, rows)
        .view({config_.heads, -1, config_.d_head});
  };
  return huggingface_attend_next(q, at_positions(row.k), at_positions(row.v),
                                 positions == kNobody, positions == own);
}

}  // namespace reformer
