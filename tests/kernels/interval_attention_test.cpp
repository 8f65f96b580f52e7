// The kernels on plain arrays of exactly the right size, where the sanitizers
// see every step beyond them, against loops over all pairs.
#include "reformer/kernels/interval_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "reformer/base/instruction_set.h"

namespace reformer::kernels {
namespace {

struct Sizes {
  int64_t heads;  // of one batch row
  int64_t length;
  int64_t d_head;
  int64_t rounds;
  bool shared;

  int64_t numbers() const { return heads * length * d_head; }
  std::string name() const {
    return "length " + std::to_string(length) + ", d_head " +
           std::to_string(d_head) + ", " + std::to_string(rounds) +
           " rounds, " + (shared ? "shared" : "separate");
  }
};

template <class T>
struct Problem {
  Sizes sizes;
  std::vector<T> q, k, v, d_output;
  std::vector<int32_t> order, place, interval;
  std::vector<T> output, lse, softmax, d_q, d_k, d_v;
};

// Any permutations, any intervals: short, long, empty.
template <class T>
Problem<T> make_problem(const Sizes& sizes) {
  std::mt19937_64 random(sizes.length * 1000 + sizes.d_head);
  std::normal_distribution<double> normal;
  const auto numbers = [&] {
    std::vector<T> out(sizes.numbers());
    for (auto& x : out) x = static_cast<T>(normal(random));
    return out;
  };
  Problem<T> p;
  p.sizes = sizes;
  p.q = numbers();
  p.k = sizes.shared ? std::vector<T>{} : numbers();
  p.v = numbers();
  p.d_output = numbers();
  std::fill_n(p.q.begin(), sizes.d_head, T(0));  // a query with no direction
  const auto [heads, length, d_head, rounds, shared] = sizes;
  p.order.resize(heads * rounds * length);
  p.place.resize(heads * length * rounds);
  p.interval.resize(heads * length * rounds * 2);
  for (int64_t row = 0; row < heads * rounds; ++row) {
    auto* order = &p.order[row * length];
    std::iota(order, order + length, 0);
    std::shuffle(order, order + length, random);
    for (int64_t s = 0; s < length; ++s) {
      const int64_t at =
          (row / rounds * length + order[s]) * rounds + row % rounds;
      p.place[at] = static_cast<int32_t>(s);
      int32_t a = static_cast<int32_t>(random() % (length + 1));
      int32_t b = static_cast<int32_t>(random() % (length + 1));
      if (s % 3 != 0) b = std::min<int32_t>(a + b % 20, length);
      p.interval[at * 2] = std::min(a, b);
      p.interval[at * 2 + 1] = std::max(a, b);
    }
  }
  return p;
}

template <class T>
void run(Problem<T>& p) {
  const auto [heads, length, d_head, rounds, shared] = p.sizes;
  p.output.assign(p.sizes.numbers(), T(9));
  p.d_q = p.d_v = p.output;
  p.d_k = shared ? std::vector<T>{} : p.output;
  p.lse.assign(heads * length, T(9));
  p.softmax.assign(heads * length * 2, T(9));
  const auto rows = [&, row = d_head, head = length * d_head](auto* data) {
    using Element = std::remove_pointer_t<decltype(data)>;
    return Rows<Element>{data, 0, head, row};
  };
  IntervalAttentionGradArgs<T> args{};
  args.forward.q = rows(std::as_const(p.q).data());
  if (!shared) args.forward.k = rows(std::as_const(p.k).data());
  args.forward.v = rows(std::as_const(p.v).data());
  args.forward.rounds = {p.order.data(),      p.place.data(),
                         p.interval.data(),   0,
                         rounds * length,     0,
                         rounds * length,     0,
                         rounds * length * 2, rounds};
  args.forward.output = rows(p.output.data());
  args.forward.lse = p.lse.data();
  args.forward.softmax = p.softmax.data();
  args.forward.batch = 1;
  args.forward.heads = heads;
  args.forward.length = length;
  args.forward.d_head = d_head;
  cpu::interval_attention(args.forward);
  args.d_output = rows(std::as_const(p.d_output).data());
  args.d_q = rows(p.d_q.data());
  if (!shared) args.d_k = rows(p.d_k.data());
  args.d_v = rows(p.d_v.data());
  cpu::interval_attention_grad(args);
}

// The definition, a head and a query at a time, in float64.
class Expected {
 public:
  template <class T>
  explicit Expected(const Problem<T>& p)
      : sizes(p.sizes),
        q(p.q.begin(), p.q.end()),
        k(p.k.begin(), p.k.end()),
        v(p.v.begin(), p.v.end()),
        output(sizes.numbers()),
        lse(sizes.heads * sizes.length),
        d_q(sizes.numbers()),
        d_k(sizes.numbers()),
        d_v(sizes.numbers()) {
    const std::vector<double> d_output(p.d_output.begin(), p.d_output.end());
    if (sizes.shared) make_unit_keys();
    for (int64_t h = 0; h < sizes.heads; ++h) {
      for (int64_t i = 0; i < sizes.length; ++i) {
        attend(p.place, p.interval, d_output, h, i);
      }
    }
    if (sizes.shared) add_unit_key_gradients();
  }

  const Sizes sizes;
  std::vector<double> q, k, v, output, lse, d_q, d_k, d_v;

 private:
  double dot(const std::vector<double>& a, int64_t i,
             const std::vector<double>& b, int64_t j) const {
    double sum = 0;
    for (int64_t c = 0; c < sizes.d_head; ++c) {
      sum += a[i * sizes.d_head + c] * b[j * sizes.d_head + c];
    }
    return sum;
  }

  void add(std::vector<double>& to, int64_t i, double factor,
           const std::vector<double>& from, int64_t j) const {
    for (int64_t c = 0; c < sizes.d_head; ++c) {
      to[i * sizes.d_head + c] += factor * from[j * sizes.d_head + c];
    }
  }

  double norm(int64_t i) const { return std::sqrt(dot(q, i, q, i)); }

  void make_unit_keys() {
    k.assign(q.size(), 0);
    for (int64_t i = 0; i < sizes.heads * sizes.length; ++i) {
      if (norm(i) > 1e-6) add(k, i, 1 / norm(i), q, i);
    }
  }

  void add_unit_key_gradients() {
    for (int64_t i = 0; i < sizes.heads * sizes.length; ++i) {
      if (norm(i) <= 1e-6) continue;
      add(d_q, i, 1 / norm(i), d_k, i);
      add(d_q, i, -dot(k, i, d_k, i) / norm(i), k, i);
    }
  }

  void attend(const std::vector<int32_t>& place,
              const std::vector<int32_t>& interval,
              const std::vector<double>& d_output, int64_t h, int64_t own) {
    const int64_t first = h * sizes.length;
    const int64_t i = first + own;
    const double scale = sizes.shared ? 1 : 1 / std::sqrt(double(sizes.d_head));
    std::vector<int64_t> keys;
    for (int64_t j = first; j < first + sizes.length; ++j) {
      bool found = false;
      for (int64_t r = 0; r < sizes.rounds; ++r) {
        const int32_t* bounds = &interval[(i * sizes.rounds + r) * 2];
        const int32_t s = place[j * sizes.rounds + r];
        found |= bounds[0] <= s && s < bounds[1];
      }
      if (found && !(sizes.shared && i == j)) keys.push_back(j);
    }
    lse[i] = -std::numeric_limits<double>::infinity();
    if (keys.empty()) {
      add(output, i, 1, v, i);
      add(d_v, i, 1, d_output, i);
      return;
    }
    double largest = lse[i];
    for (const int64_t j : keys) {
      largest = std::max(largest, scale * dot(q, i, k, j));
    }
    double sum = 0;
    for (const int64_t j : keys) {
      sum += std::exp(scale * dot(q, i, k, j) - largest);
    }
    lse[i] = largest + std::log(sum);
    const auto weight = [&](int64_t j) {
      return std::exp(scale * dot(q, i, k, j) - lse[i]);
    };
    for (const int64_t j : keys) add(output, i, weight(j), v, j);
    const double delta = dot(d_output, i, output, i);
    for (const int64_t j : keys) {
      const double d_score =
          weight(j) * (dot(d_output, i, v, j) - delta) * scale;
      add(d_v, j, weight(j), d_output, i);
      add(d_q, i, d_score, k, j);
      add(d_k, j, d_score, q, i);
    }
  }
};

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& wanted,
                 const std::string& name) {
  const double tolerance = 200 * std::numeric_limits<T>::epsilon();
  double scale = 1;
  for (const double x : wanted) {
    if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (double(got[i]) == wanted[i]) continue;  // -inf too
    ASSERT_NEAR(got[i], wanted[i], tolerance * scale) << name << " at " << i;
  }
}

template <class T>
void expect_expected(const Sizes& sizes) {
  auto p = make_problem<T>(sizes);
  const Expected expected(p);
  const auto before = instruction_set();
  for (const auto set : supported_instruction_sets()) {
    SCOPED_TRACE(sizes.name() + ", " + name_of(set));
    set_instruction_set(set);
    run(p);
    expect_near(p.output, expected.output, "output");
    expect_near(p.lse, expected.lse, "lse");
    expect_near(p.d_q, expected.d_q, "dq");
    if (!sizes.shared) expect_near(p.d_k, expected.d_k, "dk");
    expect_near(p.d_v, expected.d_v, "dv");
  }
  set_instruction_set(before);
}

TEST(IntervalAttentionKernel, EqualsTheLoopOverAllPairs) {
  for (const bool shared : {true, false}) {
    for (const int64_t d_head : {8, 9, 24, 67}) {
      for (const int64_t length : {1, 2, 15, 16, 17, 63, 65, 130}) {
        expect_expected<float>({2, length, d_head, 3, shared});
        expect_expected<double>({2, length, d_head, 3, shared});
      }
    }
  }
}

// Longer than a segment of queries and than what a ring of keys holds.
TEST(IntervalAttentionKernel, StreamsKeysThatItCannotHold) {
  for (const bool shared : {true, false}) {
    expect_expected<float>({1, 1100, 8, 2, shared});
    expect_expected<double>({1, 1100, 8, 1, shared});
  }
}

}  // namespace
}  // namespace reformer::kernels
