// Problems for interval attention on a GPU: made and solved on the host.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "reformer/config/bucket_count.h"
#include "reformer/kernels/bucket_sort.h"
#include "reformer/kernels/interval_attention.h"
#include "reformer/kernels/lsh_buckets.h"
#include "reformer/kernels/lsh_intervals.h"
#include "reformer/kernels/lsh_rotations.h"

namespace reformer::kernels {

enum class Vectors { kNormal, kClustered, kIdentical, kWithZeros, kLarge };

struct Case {
  int64_t batch = 1;
  int64_t heads = 2;
  int64_t length = 1000;
  int64_t d = 64;
  int64_t rounds = 4;  // of LSH; 0: only the local one
  int64_t local = 0;   // window of the local round, 0: none
  int64_t chunk = 128;
  int64_t n_buckets = 16;
  Window window = Window::kTrailing;
  bool causal = true;
  bool shared = true;
  bool padded = false;
  int64_t successor_heads = 0;
  Vectors vectors = Vectors::kNormal;

  int64_t all_rounds() const { return rounds + (local > 0 ? 1 : 0); }
  int64_t rows() const { return batch * heads * length; }
  int64_t numbers() const { return rows() * d; }
  std::string name() const {
    return "batch " + std::to_string(batch) + " length " +
           std::to_string(length) + " d " + std::to_string(d) + " rounds " +
           std::to_string(rounds) + " local " + std::to_string(local) +
           (causal ? " causal" : "") + (shared ? " shared" : " separate") +
           (padded ? " padded" : "") + " successor heads " +
           std::to_string(successor_heads) +
           (window == Window::kChunk ? " chunk" : " trailing") + " vectors " +
           std::to_string(static_cast<int>(vectors));
  }
};

// Numbers are float on the host and exact in the element type under test.
struct Problem {
  Case sizes;
  std::vector<float> q, k, v, d_output;
  std::vector<char> mask;
  std::vector<int32_t> order, place, interval;

  bool real(int64_t batch, int64_t i) const {
    return mask.empty() || mask[batch * sizes.length + i];
  }

  // [batch, length]: the next real position; `length`: there is none.
  std::vector<int32_t> next() const {
    std::vector<int32_t> found(sizes.batch * sizes.length);
    for (int64_t b = 0; b < sizes.batch; ++b) {
      auto after = static_cast<int32_t>(sizes.length);
      for (int64_t i = sizes.length - 1; i >= 0; --i) {
        found[b * sizes.length + i] = after;
        if (real(b, i)) after = static_cast<int32_t>(i);
      }
    }
    return found;
  }
};

inline float rounded_to(float x, const __nv_bfloat16*) {
  return __bfloat162float(__float2bfloat16(x));
}
inline float rounded_to(float x, const float*) { return x; }
template <class T>
float rounded(double x) {
  return rounded_to(static_cast<float>(x), static_cast<const T*>(nullptr));
}

template <class T>
std::vector<float> make_vectors(const Case& c, Vectors kind,
                                std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<double> centres(32 * c.d);
  for (auto& x : centres) x = normal(random);
  std::vector<float> out(c.numbers());
  for (int64_t i = 0; i < c.rows(); ++i) {
    const int64_t centre = random() % 32;
    const bool zero = kind == Vectors::kWithZeros && random() % 5 == 0;
    const double none = zero && random() % 2 == 0 ? 1e-9 : 0;  // no key either
    for (int64_t e = 0; e < c.d; ++e) {
      double x = normal(random);
      if (kind == Vectors::kClustered) x = centres[centre * c.d + e] + 0.2 * x;
      if (kind == Vectors::kIdentical) x = centres[e];
      if (kind == Vectors::kLarge) x *= 20;
      if (zero) x *= none;
      out[i * c.d + e] = rounded<T>(x);
    }
  }
  return out;
}

template <class T>
Problem make_problem(const Case& c, uint64_t seed = 1) {
  std::mt19937_64 random(seed * 7919 + c.length * 131 + c.d * 17 + c.rounds);
  Problem p;
  p.sizes = c;
  p.q = make_vectors<T>(c, c.vectors, random);
  if (!c.shared) p.k = make_vectors<T>(c, Vectors::kNormal, random);
  p.v = make_vectors<T>(c, Vectors::kNormal, random);
  p.d_output = make_vectors<T>(c, Vectors::kNormal, random);
  if (c.padded) {
    p.mask.assign(c.batch * c.length, 1);
    for (auto& m : p.mask) m = random() % 4 != 0;
  }
  const int64_t rounds = c.all_rounds();
  const int64_t local = rounds - c.rounds;
  std::vector<uint16_t> buckets(c.batch * c.heads * rounds * c.length);
  if (c.rounds > 0) {
    const int64_t columns = rotation_columns(c.n_buckets);
    std::vector<float> rotations(c.heads * c.rounds * c.d * columns);
    cpu::lsh_rotations(
        {{seed, 3, 1}, rotations.data(), c.heads, c.rounds, c.d, columns});
    std::vector<uint16_t> hashed(c.batch * c.heads * c.rounds * c.length);
    LshBucketsArgs<float> args{};
    args.vectors = {p.q.data(), c.heads * c.length * c.d, c.length * c.d, c.d};
    args.rotations = rotations.data();
    args.buckets = hashed.data();
    args.batch = c.batch;
    args.heads = c.heads;
    args.rounds = c.rounds;
    args.length = c.length;
    args.d_head = c.d;
    args.columns = columns;
    const auto factors = bucket_factors(c.n_buckets);
    args.n_factors = static_cast<int64_t>(factors.size());
    std::copy(factors.begin(), factors.end(), args.factors);
    cpu::lsh_buckets(args);
    for (int64_t h = 0; h < c.batch * c.heads; ++h) {
      std::copy_n(&hashed[h * c.rounds * c.length], c.rounds * c.length,
                  &buckets[(h * rounds + local) * c.length]);
    }
  }
  p.order.resize(c.rows() * rounds);
  p.place.resize(c.rows() * rounds);
  p.interval.resize(c.rows() * rounds * 2);
  const auto* mask =
      c.padded ? reinterpret_cast<const bool*>(p.mask.data()) : nullptr;
  cpu::bucket_sort({buckets.data(), mask, p.order.data(), p.place.data(),
                    c.batch, c.heads, rounds, c.length, c.n_buckets});
  std::vector<WindowRule> rules;
  if (local) rules.push_back({Window::kTrailing, c.local});
  for (int64_t r = 0; r < c.rounds; ++r) rules.push_back({c.window, c.chunk});
  cpu::lsh_intervals({buckets.data(), p.order.data(), mask, rules.data(),
                      p.interval.data(), c.batch, c.heads, rounds, c.length,
                      c.causal});
  return p;
}

inline void fill_padded_rows(Problem& p, float x) {
  const Case& c = p.sizes;
  for (int64_t i = 0; i < c.rows(); ++i) {
    if (p.mask[i / (c.heads * c.length) * c.length + i % c.length]) continue;
    for (auto* rows : {&p.q, &p.v, &p.d_output}) {
      std::fill_n(rows->begin() + i * c.d, c.d, x);
    }
  }
}

struct Result {
  std::vector<double> output, lse, d_q, d_k, d_v;
};

// One (batch, head) in Number, everything that is stored rounded to Stored:
// the plain version for Number = float, the tolerance for double.
template <class Number, class Stored>
void attend_plainly(const Problem& p, int64_t head, bool round, Result& out) {
  const Case& c = p.sizes;
  const int64_t length = c.length, d = c.d, rounds = c.all_rounds();
  const auto store = [&](Number x) {
    return round ? static_cast<Number>(rounded<Stored>(x)) : x;
  };
  const float* q = &p.q[head * length * d];
  const float* v = &p.v[head * length * d];
  const float* d_o = &p.d_output[head * length * d];
  const auto real = [&](int64_t i) { return p.real(head / c.heads, i); };
  const auto next = p.next();
  const auto offered = [&](int64_t j) {
    const int64_t after = next[head / c.heads * length + j];
    const bool successors = head % c.heads < c.successor_heads;
    return successors && after < length ? after : j;
  };
  std::vector<Number> k(length * d), inverse(length, 0);
  const Number scale = c.shared ? 1 : 1 / std::sqrt(Number(d));
  for (int64_t j = 0; j < length; ++j) {
    if (!c.shared) {
      std::copy_n(&p.k[(head * length + j) * d], d, &k[j * d]);
      continue;
    }
    Number square = 0;
    for (int64_t e = 0; e < d; ++e)
      square += Number(q[j * d + e]) * q[j * d + e];
    if (std::sqrt(square) > Number(1e-6)) inverse[j] = 1 / std::sqrt(square);
    for (int64_t e = 0; e < d; ++e) k[j * d + e] = q[j * d + e] * inverse[j];
  }
  std::vector<Number> d_q(length * d), d_k(length * d), d_v(length * d);
  const int32_t* order = &p.order[head * rounds * length];
  const int32_t* place = &p.place[head * length * rounds];
  const int32_t* interval = &p.interval[head * length * rounds * 2];
  std::vector<int64_t> keys;
  std::vector<Number> scores;
  for (int64_t i = 0; i < length; ++i) {
    keys.clear();
    for (int64_t r = 0; r < rounds; ++r) {
      const int32_t* own = interval + (i * rounds + r) * 2;
      for (int64_t s = own[0]; s < own[1]; ++s) {
        const int64_t j = order[r * length + s];
        bool met = c.shared && i == j;
        for (int64_t e = 0; e < r && !met; ++e) {
          const int32_t* old = interval + (i * rounds + e) * 2;
          const int32_t there = place[j * rounds + e];
          met = there >= old[0] && there < old[1];
        }
        if (!met) keys.push_back(j);
      }
    }
    const int64_t row = (head * length + i) * d;
    if (keys.empty()) {
      out.lse[head * length + i] = -std::numeric_limits<double>::infinity();
      for (int64_t e = 0; e < d; ++e) {
        out.output[row + e] = real(i) ? v[i * d + e] : 0;
        if (real(i)) d_v[i * d + e] += d_o[i * d + e];
      }
      continue;
    }
    scores.clear();
    Number largest = -std::numeric_limits<Number>::infinity();
    for (const int64_t j : keys) {
      Number s = 0;
      for (int64_t e = 0; e < d; ++e) s += Number(q[i * d + e]) * k[j * d + e];
      scores.push_back(s * scale);
      largest = std::max(largest, scores.back());
    }
    Number sum = 0;
    for (auto& s : scores) {
      s = std::exp(s - largest);
      sum += s;
    }
    out.lse[head * length + i] = largest + std::log(sum);
    std::vector<Number> o(d);
    for (std::size_t n = 0; n < keys.size(); ++n) {
      const Number w = store(scores[n]);
      const float* value = v + offered(keys[n]) * d;
      for (int64_t e = 0; e < d; ++e) o[e] += w * value[e];
    }
    Number delta = 0;
    for (int64_t e = 0; e < d; ++e) {
      o[e] = store(o[e] / sum);
      out.output[row + e] = o[e];
      delta += o[e] * d_o[i * d + e];
    }
    for (std::size_t n = 0; n < keys.size(); ++n) {
      const int64_t j = keys[n];
      const Number w = scores[n] / sum;
      Number dp = 0;
      for (int64_t e = 0; e < d; ++e)
        dp += Number(d_o[i * d + e]) * v[offered(j) * d + e];
      const Number ds = store(w * (dp - delta) * scale);
      const Number pw = store(w);
      for (int64_t e = 0; e < d; ++e) {
        d_v[offered(j) * d + e] += pw * d_o[i * d + e];
        d_q[i * d + e] += ds * k[j * d + e];
        d_k[j * d + e] += ds * q[i * d + e];
      }
    }
  }
  for (int64_t j = 0; j < length; ++j) {
    Number along = 0;
    for (int64_t e = 0; e < d; ++e) along += d_k[j * d + e] * k[j * d + e];
    for (int64_t e = 0; e < d; ++e) {
      const int64_t at = (head * length + j) * d + e;
      Number dq = d_q[j * d + e];
      if (c.shared) dq += (d_k[j * d + e] - k[j * d + e] * along) * inverse[j];
      out.d_q[at] = store(dq);
      if (!c.shared) out.d_k[at] = store(d_k[j * d + e]);
      out.d_v[at] = store(d_v[j * d + e]);
    }
  }
}

template <class Number, class Stored>
Result attend_plainly(const Problem& p, bool round) {
  const Case& c = p.sizes;
  Result out;
  out.output = out.d_q = out.d_v = std::vector<double>(c.numbers());
  if (!c.shared) out.d_k = out.output;
  out.lse.resize(c.rows());
#pragma omp parallel for
  for (int64_t h = 0; h < c.batch * c.heads; ++h) {
    attend_plainly<Number, Stored>(p, h, round, out);
  }
  return out;
}

}  // namespace reformer::kernels
