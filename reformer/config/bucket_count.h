// How many buckets a hash has, and how many arguments of maxima it takes.
//
// Up to 128 buckets the hash is the paper's, one argmax over n_buckets / 2
// signed axes. Above, it is factorised: n_buckets = b1 * ... * bf, all even,
// each at most 32, in the fewest factors and as equal as possible, one argmax
// for each (mixed radix, b1 most significant), because the plain product with
// the rotations is then as dear as the attention itself.
#pragma once

#include <cstdint>
#include <vector>

namespace reformer {

inline constexpr int64_t kMaxBuckets = 65536;  // ids take two bytes

// The factors of n_buckets, {n_buckets} itself where the hash is plain, the
// largest factor first. Empty when a hash cannot have that many buckets.
std::vector<int64_t> bucket_factors(int64_t n_buckets);

// The possible number of buckets nearest to `wanted`, the smaller of two.
int64_t nearest_bucket_count(double wanted);

// The model's default: nearest to 2 * training_length / chunk_length, so that
// a bucket holds half a chunk on average.
int64_t default_bucket_count(int64_t training_length, int64_t chunk_length);

// Columns of a round's rotations: half of each factor, summed.
int64_t rotation_columns(int64_t n_buckets);

// Throws Error, naming `op` and the nearest possible number, unless a hash can
// have n_buckets.
void require_bucket_count(const char* op, int64_t n_buckets);

}  // namespace reformer
