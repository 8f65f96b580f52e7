#include "cli/serve/attended_positions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reformer/base/interruption.h"
#include "reformer/generate/decoded_attention.h"
#include "reformer/kernels/interval_attention.h"

namespace reformer::cli {
namespace {

struct Seen {
  int64_t times = 0;
  uint64_t rounds = 0;
};

double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

uint64_t bit_of(int64_t round) {
  return uint64_t{1} << std::min<int64_t>(round, 62);
}

std::vector<Seen> seen_by(const AttentionLayer& layer, const LayerRows& rows,
                          int64_t head, int64_t position) {
  const bool hashed =
      layer.kind() == AttentionKind::kLsh && head < layer.hashed_heads();
  std::vector<Seen> seen(static_cast<size_t>(position + 1));
  const auto earlier = earlier_positions(layer, hashed);
  const int64_t rounds = hashed ? rows.buckets.size(1) : 1;
  const int64_t together = rounds_together(layer.lsh(), rounds);
  const int64_t range = earlier.begin(position);
  const int64_t end = position + (earlier.itself ? 1 : 0);
  for (int64_t j = range; j < end; ++j) {  // in every group of rounds
    seen[static_cast<size_t>(j)].times = (rounds + together - 1) / together;
  }
  if (!hashed) return seen;
  const auto of_head = rows.buckets[head];
  std::vector<int64_t> group_of(seen.size(), -1);  // the last that saw it
  for (int64_t r = 0; r < rounds; ++r) {
    const auto* bucket = of_head[r].const_data_ptr<uint16_t>();
    int64_t left = layer.lsh().chunk_length;
    for (int64_t j = position - 1; j >= 0 && left > 0; --j) {
      if (bucket[j] != bucket[position]) continue;
      auto& one = seen[static_cast<size_t>(j)];
      auto& group = group_of[static_cast<size_t>(j)];
      one.rounds |= bit_of(r);
      if (j < range && group < r / together) ++one.times;
      group = r / together;
      --left;
    }
  }
  return seen;
}

// Positions up to the last one, by bucket.
std::vector<int64_t> sorted_by(const uint16_t* bucket, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return bucket[a] < bucket[b]; });
  return order;
}

// HuggingfaceCache's rule: of each round the chunk of sorted places and the one
// before it, of its first chunk the last of the round before.
std::vector<Seen> seen_by_huggingface(const HuggingfaceLsh& lsh,
                                      const at::Tensor& buckets,
                                      int64_t position) {
  const int64_t count = position + 1;
  if (lsh.sees_all(count)) return std::vector<Seen>(size_t(count), {1, 0});
  std::vector<Seen> seen(static_cast<size_t>(count));
  const int64_t m = lsh.chunk_length;
  const int64_t rounds = buckets.size(0);
  std::vector<std::vector<int64_t>> orders;
  for (int64_t r = 0; r < rounds; ++r) {
    interruption_point();
    orders.push_back(sorted_by(buckets[r].const_data_ptr<uint16_t>(), count));
  }
  const auto see = [&](int64_t by, int64_t of, int64_t chunk) {
    const auto& order = orders[static_cast<size_t>(of)];
    for (int64_t i = chunk; i < std::min(count, chunk + m); ++i) {
      auto& one = seen[static_cast<size_t>(order[static_cast<size_t>(i)])];
      ++one.times;
      one.rounds |= bit_of(by);
    }
  };
  for (int64_t r = 0; r < rounds; ++r) {
    const auto& order = orders[static_cast<size_t>(r)];
    const int64_t place =
        std::find(order.begin(), order.end(), position) - order.begin();
    const int64_t chunk = place / m * m;
    if (chunk > 0) {
      see(r, r, chunk - m);
    } else {
      see(r, (r + rounds - 1) % rounds, lsh.padded(count) - m);
    }
    see(r, r, chunk);
  }
  return seen;
}

}  // namespace

std::vector<AttendedPosition> attended_positions(const AttentionLayer& layer,
                                                 const LayerRows& rows,
                                                 int64_t head,
                                                 int64_t position) {
  const bool huggingface = layer.kind() == AttentionKind::kLshHuggingface;
  const auto seen = huggingface
                        ? seen_by_huggingface(layer.huggingface(),
                                              rows.buckets[head], position)
                        : seen_by(layer, rows, head, position);
  const int64_t d = layer.d_head();
  const bool shared = !rows.k.defined();
  const float* q = rows.q[head].const_data_ptr<float>() + position * d;
  const float* keys = (shared ? rows.q : rows.k)[head].const_data_ptr<float>();
  const auto score_of = [&](int64_t j) {
    const float* k = keys + j * d;
    if (huggingface) {
      if (j == position) return kHuggingfaceScoreOfItself;
      return dot(q, k, d) / std::sqrt(dot(k, k, d) + 1e-6 * double(d));
    }
    const double norm = shared ? std::sqrt(dot(k, k, d)) : std::sqrt(double(d));
    return norm > kernels::kSmallestKeyNorm ? dot(q, k, d) / norm : 0;
  };
  std::vector<double> score(seen.size(), -INFINITY);
  double best = -INFINITY;
  for (int64_t j = 0; j <= position; ++j) {
    const auto i = static_cast<size_t>(j);
    if (seen[i].times == 0) continue;
    best = std::max(best, score[i] = score_of(j));
  }
  std::vector<AttendedPosition> attended(seen.size());
  if (best == -INFINITY) {  // who sees nobody attends to itself
    attended.back().weight = 1;
    return attended;
  }
  double sum = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].times == 0) continue;
    score[i] = double(seen[i].times) * std::exp(score[i] - best);
    sum += score[i];
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].times > 0) attended[i] = {score[i] / sum, seen[i].rounds};
  }
  return attended;
}

}  // namespace reformer::cli
