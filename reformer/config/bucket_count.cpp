#include "reformer/config/bucket_count.h"

#include <algorithm>
#include <cmath>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

constexpr int64_t kMaxPlain = 128;
constexpr int64_t kMaxFactor = 32;

// Factorises n into exactly `count` even factors of at most `largest`, in
// descending order, with the largest one as small as possible. Empty: cannot.
std::vector<int64_t> even_factors(int64_t n, int64_t count, int64_t largest) {
  if (count == 1) {
    const bool fits = n % 2 == 0 && n >= 2 && n <= largest;
    return fits ? std::vector<int64_t>{n} : std::vector<int64_t>{};
  }
  for (int64_t first = 2; first <= largest; first += 2) {
    if (n % first != 0) continue;
    auto rest = even_factors(n / first, count - 1, first);
    if (rest.empty()) continue;
    rest.insert(rest.begin(), first);
    return rest;
  }
  return {};
}

}  // namespace

std::vector<int64_t> bucket_factors(int64_t n_buckets) {
  if (n_buckets < 2 || n_buckets > kMaxBuckets || n_buckets % 2 != 0) return {};
  if (n_buckets <= kMaxPlain) return {n_buckets};
  for (int64_t count = 2; (int64_t{1} << count) <= n_buckets; ++count) {
    auto factors = even_factors(n_buckets, count, kMaxFactor);
    if (!factors.empty()) return factors;
  }
  return {};
}

int64_t nearest_bucket_count(double wanted) {
  const double within = std::clamp(wanted, 2.0, double{kMaxBuckets});
  int64_t below = static_cast<int64_t>(std::floor(within));
  int64_t above = static_cast<int64_t>(std::ceil(within));
  while (bucket_factors(below).empty()) --below;  // 2 is possible
  while (bucket_factors(above).empty()) ++above;  // so is kMaxBuckets
  const bool nearer_above = double(above) - within < within - double(below);
  return nearer_above ? above : below;
}

int64_t default_bucket_count(int64_t training_length, int64_t chunk_length) {
  return nearest_bucket_count(2.0 * double(training_length) /
                              double(chunk_length));
}

int64_t rotation_columns(int64_t n_buckets) {
  int64_t columns = 0;
  for (const int64_t factor : bucket_factors(n_buckets)) columns += factor / 2;
  return columns;
}

void require_bucket_count(const char* op, int64_t n_buckets) {
  require(!bucket_factors(n_buckets).empty(), op,
          ": n_buckets must be an even number up to 128, or a product of even "
          "factors of at most 32 each, up to ",
          kMaxBuckets, "; got ", n_buckets, ", the nearest is ",
          nearest_bucket_count(double(n_buckets)));
}

}  // namespace reformer
