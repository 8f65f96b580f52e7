#include "reformer/generate/attend_next.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "reformer/base/errors.h"
#include "tests/support/cases.h"
#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

constexpr int64_t kHeads = 3;
constexpr int64_t kLists = 4;

// Texts of different lengths, and what the last position of each sees.
struct Case {
  std::vector<int64_t> lengths;
  int64_t d_head;
  bool shared_qk;
  at::Tensor k;  // [batch, heads, longest, d_head]; of shared ones, q too
  at::Tensor v;
  at::Tensor q;  // [batch, heads, 1, d_head]
  std::vector<std::vector<int32_t>> members;
  AttendedPositions attended;

  int64_t batch() const { return static_cast<int64_t>(lengths.size()); }
};

// Lists that share positions with each other and with the range.
std::vector<int32_t> some_positions(int64_t below, std::mt19937& random) {
  std::vector<int32_t> positions;
  for (int64_t p = 0; p < below; ++p) {
    if (random() % 3 == 0) positions.push_back(static_cast<int32_t>(p));
  }
  return positions;
}

Case make_case(const std::vector<int64_t>& lengths, int64_t d_head,
               bool shared_qk, uint64_t seed) {
  Case c{lengths, d_head, shared_qk, {}, {}, {}, {}, {}};
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const std::vector<int64_t> sizes = {c.batch(), kHeads, longest, d_head};
  c.k = make_queries(Queries::kSomeZero, sizes, seed).mul(1.5);
  c.v = normal(sizes, seed + 1);
  c.q = normal({c.batch(), kHeads, 1, d_head}, seed + 2).mul(1.5);
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (const int64_t length : lengths) {
    const int64_t end = shared_qk ? length - 1 : length;
    c.attended.ranges.push_back({std::max<int64_t>(0, end - 9), end});
    for (int64_t i = 0; i < kHeads * kLists; ++i) {
      c.members.push_back(some_positions(length - 1, random));
    }
  }
  for (const auto& list : c.members) {
    c.attended.lists.push_back(
        {list.data(), static_cast<int64_t>(list.size())});
  }
  return c;
}

// In two parts, as a prompt and its continuation.
KeyValueCache filled_cache(const Case& c, at::ScalarType type,
                           int64_t reach = 0) {
  KeyValueCache cache({c.batch(), kHeads, c.d_head, c.shared_qk, type, reach});
  const auto k = c.k.to(type);
  const auto v = c.v.to(type);
  std::vector<int64_t> first;
  for (const int64_t length : c.lengths) first.push_back(length - 1);
  cache.append(k, v, first);
  auto last_k = at::empty({c.batch(), kHeads, 1, c.d_head}, type);
  auto last_v = at::empty_like(last_k);
  for (int64_t row = 0; row < c.batch(); ++row) {
    last_k[row].copy_(k[row].narrow(1, first[row], 1));
    last_v[row].copy_(v[row].narrow(1, first[row], 1));
  }
  cache.append(last_k, last_v, std::vector<int64_t>(c.batch(), 1));
  return cache;
}

// What a head of a row sees, [length] bool.
at::Tensor attended_of(const Case& c, int64_t row, int64_t head) {
  auto set = at::zeros({c.lengths[row]}, at::kBool);
  const auto [begin, end] = c.attended.ranges[row];
  set.narrow(0, begin, end - begin).fill_(true);
  for (int64_t i = 0; i < kLists; ++i) {
    for (const int32_t p : c.members[(row * kHeads + head) * kLists + i]) {
      set[p] = true;
    }
  }
  return set;
}

// By library calls, [batch, heads, 1, d_head].
at::Tensor plain(const Case& c, at::ScalarType type) {
  auto output = at::empty(c.q.sizes(), type);
  for (int64_t row = 0; row < c.batch(); ++row) {
    for (int64_t head = 0; head < kHeads; ++head) {
      const int64_t n = c.lengths[row];
      const auto k = c.k[row][head].narrow(0, 0, n).to(type);
      const auto v = c.v[row][head].narrow(0, 0, n).to(type);
      const auto q = c.q[row][head].to(type);  // [1, d_head]
      const auto set = attended_of(c, row, head);
      const auto scores = c.shared_qk
                              ? q.matmul(reference::unit_keys(k).t())
                              : q.matmul(k.t()) / std::sqrt(double(c.d_head));
      const auto masked = scores.masked_fill(
          set.logical_not(), -std::numeric_limits<double>::infinity());
      output[row][head] = set.any().item<bool>() ? masked.softmax(-1).matmul(v)
                                                 : v.narrow(0, n - 1, 1);
    }
  }
  return output;
}

TEST(AttendNext, IsTheSoftmaxOverTheUnionOfRangeAndLists) {
  uint64_t seed = 0;
  for (const bool shared_qk : {true, false}) {
    for (const int64_t d_head : {8, 40, 64, 129, 256}) {
      const auto c = make_case({33, 1, 2100, 2}, d_head, shared_qk, seed += 10);
      const auto exact = plain(c, at::kDouble);
      const double bar = 2 * max_error(plain(c, at::kFloat), exact) +
                         4 * std::numeric_limits<float>::epsilon() *
                             exact.abs().max().item<double>();
      const auto cache = filled_cache(c, at::kFloat);
      for_each_instruction_set([&](const std::string& name) {
        EXPECT_LE(max_error(attend_next(c.q, cache, c.attended), exact), bar)
            << name << ", d_head " << d_head;
      });
      const auto answer = attend_next(c.q.to(at::kDouble),
                                      filled_cache(c, at::kDouble), c.attended);
      EXPECT_LE(max_error(answer, exact), 1e-12) << "d_head " << d_head;
    }
  }
}

TEST(AttendNext, WhoSeesNobodyAttendsToItself) {
  auto c = make_case({5, 1100}, 16, /*shared_qk=*/true, 7);
  c.attended = {{{0, 0}, {3, 3}}, {}};
  const auto output = attend_next(c.q, filled_cache(c, at::kFloat), c.attended);
  EXPECT_TRUE(output[0].equal(c.v[0].narrow(1, 4, 1)));
  EXPECT_TRUE(output[1].equal(c.v[1].narrow(1, 1099, 1)));
}

TEST(AttendNext, CachesOfLimitedReachForgetOnlyWhatIsBeyondIt) {
  for (const int64_t reach : {3, 1024, 1030}) {
    auto c = make_case({5, 4000, 2047}, 16, /*shared_qk=*/true, 5);
    for (int64_t row = 0; row < c.batch(); ++row) {
      const int64_t length = c.lengths[row];
      c.attended.ranges[row] = {std::max<int64_t>(0, length - reach), length};
    }
    c.members.assign(c.members.size(), {});
    c.attended.lists.clear();
    const auto cache = filled_cache(c, at::kDouble, reach);
    const auto output = attend_next(c.q.to(at::kDouble), cache, c.attended);
    EXPECT_LE(max_error(output, plain(c, at::kDouble)), 1e-12) << reach;
    c.attended.ranges[1].begin -= 1;
    EXPECT_THROW(attend_next(c.q.to(at::kDouble), cache, c.attended), Error);
  }
}

TEST(AttendNext, LargeScoresDoNotOverflow) {
  auto c = make_case({300}, 16, /*shared_qk=*/true, 9);
  c.q.mul_(1e6);
  const auto output = attend_next(c.q, filled_cache(c, at::kFloat), c.attended);
  EXPECT_LE(max_error(output, plain(c, at::kDouble)), 1e-5);
}

TEST(AttendNext, RefusesWhatDoesNotFit) {
  const auto c = make_case({5, 7}, 16, /*shared_qk=*/true, 3);
  const auto cache = filled_cache(c, at::kFloat);
  auto bad = c.attended;
  bad.ranges[0].end = 6;
  EXPECT_THROW(attend_next(c.q, cache, bad), Error);
  bad.ranges = {{0, 1}};
  EXPECT_THROW(attend_next(c.q, cache, bad), Error);
  EXPECT_THROW(attend_next(c.q.to(at::kDouble), cache, c.attended), Error);
  EXPECT_THROW(attend_next(c.k, cache, c.attended), Error);
  KeyValueCache empty({1, kHeads, 16, /*shared_qk=*/true, at::kFloat});
  EXPECT_THROW(empty.append(c.k, c.v, {5, 7}), Error);
  EXPECT_THROW(empty.append(c.k.narrow(0, 0, 1), c.v.narrow(0, 0, 1), {8}),
               Error);
}

}  // namespace
}  // namespace reformer
