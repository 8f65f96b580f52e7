#include "cli/attention/head_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reformer/kernels/interval_attention.h"

namespace reformer::cli {
namespace {

double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

// q . k / |k| of shared queries and keys, q . k / sqrt(d_head) of others.
double score_of(const HeadVectors& head, int64_t query, int64_t key) {
  const int64_t d = head.d_head;
  const float* k = (head.k == nullptr ? head.q : head.k) + key * d;
  const double norm =
      head.k == nullptr ? std::sqrt(dot(k, k, d)) : std::sqrt(double(d));
  if (norm <= kernels::kSmallestKeyNorm) return 0;
  return dot(head.q + query * d, k, d) / norm;
}

}  // namespace

int64_t value_of_key(const HeadVectors& head, int64_t key) {
  return head.successors ? std::min(key + 1, head.length - 1) : key;
}

std::vector<ReadValue> read_values(const HeadVectors& head, int64_t query,
                                   const std::vector<int64_t>& seen) {
  std::vector<ReadValue> values;
  double largest = -std::numeric_limits<double>::infinity();
  for (const int64_t key : seen) {
    values.push_back({value_of_key(head, key), score_of(head, query, key)});
    largest = std::max(largest, values.back().weight);
  }
  double sum = 0;
  for (auto& value : values)
    sum += value.weight = std::exp(value.weight - largest);
  for (auto& value : values) value.weight /= sum;
  return values;
}

}  // namespace reformer::cli
