// A user's mistake throws before any work, and says which operation, what was
// required and what was given.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/device/memory_meter.h"
#include "reformer/ops/full_attention.h"
#include "reformer/ops/interval_statistics.h"
#include "reformer/ops/local_attention.h"
#include "reformer/ops/lsh_attention.h"
#include "reformer/ops/lsh_buckets.h"
#include "reformer/ops/lsh_intervals.h"
#include "reformer/ops/lsh_rotations.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

using Parts = std::vector<std::string>;

// `parts` must stand in the message; `call` must not have worked before.
void expect_error(const std::function<void()>& call, const Parts& parts) {
  MemoryMeter meter;
  try {
    call();
    ADD_FAILURE() << "no error that says " << testing::PrintToString(parts);
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const auto& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos)
          << "\"" << part << "\" is not in: " << message;
    }
    EXPECT_LT(meter.peak_bytes(), 1 << 20);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not an Error, wanted " << testing::PrintToString(parts)
                  << ": " << error.what();
  }
}

at::Tensor vectors(at::IntArrayRef sizes = {2, 3, 20, 16}) {
  return at::zeros(sizes, at::kFloat);
}

at::Tensor buckets(at::IntArrayRef sizes = {2, 3, 4, 20}) {
  return at::zeros(sizes, at::kUInt16);
}

// Longer than int32 can count, of a few bytes.
at::Tensor endless(int64_t d_head) {
  return at::zeros({1, 1, 1, d_head}, at::kFloat)
      .expand({1, 1, int64_t{1} << 31, d_head});
}

LshConfig small_config() {
  LshConfig config;
  config.n_buckets = 4;
  return config;
}

struct Attention {
  std::string name;
  std::function<void(const at::Tensor& qk, const at::Tensor& v,
                     const at::Tensor& mask)>
      call;
};

const std::vector<Attention>& attentions() {
  static const std::vector<Attention> all{
      {"lsh_attention",
       [](const auto& qk, const auto& v, const auto& mask) {
         lsh_attention(qk, v, small_config(), HashKey{}, mask);
       }},
      {"lsh_attention",
       [](const auto& qk, const auto& v, const auto& mask) {
         lsh_attention(qk, v, buckets(), small_config(), mask);
       }},
      {"local_attention",
       [](const auto& qk, const auto& v, const auto& mask) {
         local_attention(qk, v, LocalConfig{}, mask);
       }},
      {"full_attention",
       [](const auto& qk, const auto& v, const auto& mask) {
         full_attention(qk, qk, v, /*causal=*/true, mask);
       }},
      {"full_shared_qk_attention",
       [](const auto& qk, const auto& v, const auto& mask) {
         full_shared_qk_attention(qk, v, /*causal=*/true, mask);
       }},
      {"interval_attention",
       [](const auto& qk, const auto& v, const auto& mask) {
         interval_attention(qk, {}, v, lsh_rounds(buckets(), small_config()),
                            mask);
       }},
  };
  return all;
}

TEST(BadInput, WrongVectorsAreNamedByEveryAttention) {
  for (const auto& [name, call] : attentions()) {
    SCOPED_TRACE(name);
    const auto expect = [&, &name = name, &call = call](const at::Tensor& x,
                                                        const Parts& parts) {
      Parts all{name + ": "};
      all.insert(all.end(), parts.begin(), parts.end());
      expect_error([&] { call(x, x, {}); }, all);
    };
    expect({}, {"must be a tensor", "got none"});
    expect(vectors({3, 20, 16}),
           {"must be [batch, heads, length, d_head]", "[3, 20, 16]"});
    expect(vectors({2, 3, 20, 16, 1}), {"[batch, heads", "[2, 3, 20, 16, 1]"});
    expect(vectors().to(at::kHalf), {"must be float32 or float64", "Half"});
    expect(vectors().to(at::kInt), {"must be float32 or float64", "Int"});
    expect(vectors({0, 3, 20, 16}), {"batch", "at least 1", "[0, 3, 20, 16]"});
    expect(vectors({2, 0, 20, 16}), {"heads", "at least 1", "[2, 0, 20, 16]"});
    expect(vectors({2, 3, 0, 16}), {"length", "from 1 to 2147483647", "got 0"});
    expect(endless(16), {"length", "from 1 to 2147483647", "got 2147483648"});
    expect(vectors({2, 3, 20, 7}), {"d_head", "from 8 to 256", "got 7"});
    expect(vectors({2, 3, 20, 257}), {"d_head", "from 8 to 256", "got 257"});
  }
}

TEST(BadInput, ValuesMustBeLikeQueries) {
  for (const auto& [name, call] : attentions()) {
    SCOPED_TRACE(name);
    const auto expect = [&, &name = name, &call = call](const at::Tensor& v,
                                                        const Parts& parts) {
      Parts all{name + ": v must"};
      all.insert(all.end(), parts.begin(), parts.end());
      expect_error([&] { call(vectors(), v, {}); }, all);
    };
    expect({}, {"got none"});
    expect(vectors({2, 3, 19, 16}), {"[2, 3, 20, 16]", "got [2, 3, 19, 16]"});
    expect(vectors({2, 3, 20, 24}), {"[2, 3, 20, 16]", "got [2, 3, 20, 24]"});
    expect(vectors({1, 3, 20, 16}), {"[2, 3, 20, 16]", "got [1, 3, 20, 16]"});
    expect(vectors().to(at::kDouble), {"Float", "got Double"});
  }
}

TEST(BadInput, MasksMustBeBoolAndOfBatchAndLength) {
  for (const auto& [name, call] : attentions()) {
    SCOPED_TRACE(name);
    const auto expect = [&, &name = name, &call = call](const at::Tensor& mask,
                                                        const Parts& parts) {
      Parts all{name + ": mask must be"};
      all.insert(all.end(), parts.begin(), parts.end());
      expect_error([&] { call(vectors(), vectors(), mask); }, all);
    };
    expect(at::ones({2, 20}, at::kFloat), {"bool", "Float"});
    expect(at::ones({2, 19}, at::kBool), {"[2, 20]", "[2, 19]"});
    expect(at::ones({1, 20}, at::kBool), {"[2, 20]", "[1, 20]"});
    expect(at::ones({20}, at::kBool), {"[2, 20]", "[20]"});
    expect(at::ones({2, 20, 1}, at::kBool), {"[2, 20]", "[2, 20, 1]"});
  }
}

TEST(BadInput, LshSettingsAreChecked) {
  const auto expect = [](const auto& change, const Parts& parts) {
    auto config = small_config();
    change(config);
    Parts all{"lsh_attention: "};
    all.insert(all.end(), parts.begin(), parts.end());
    const auto qk = vectors();
    expect_error([&] { lsh_attention(qk, qk, config, HashKey{}); }, all);
    expect_error([&] { lsh_attention_buckets(qk, config, HashKey{}); }, all);
  };
  expect([](auto& c) { c.rounds = 0; }, {"rounds", "at least 1", "got 0"});
  expect([](auto& c) { c.rounds = -1; }, {"rounds", "at least 1", "got -1"});
  expect([](auto& c) { c.chunk_length = 0; }, {"chunk_length", "got 0"});
  expect([](auto& c) { c.local_window = -1; }, {"local_window", "got -1"});
  expect([](auto& c) { c.n_buckets = 7; }, {"n_buckets", "got 7", "is 6"});
  expect([](auto& c) { c.n_buckets = -2; }, {"n_buckets", "got -2"});
  expect([](auto& c) { c.n_buckets = 136; }, {"n_buckets", "136", "is 132"});
  expect([](auto& c) { c.n_buckets = 131072; },
         {"n_buckets", "up to 65536", "got 131072"});
}

TEST(BadInput, SuccessorHeadsAreHeadsOfSharedQueries) {
  for (const int64_t heads : {-1, 4}) {
    const std::string got = "0 to 3, got " + std::to_string(heads);
    expect_error(
        [&] {
          lsh_attention(vectors(), vectors(), LshConfig{}, HashKey{}, {},
                        heads);
        },
        {"lsh_attention: successor_heads", got});
    expect_error([&] { local_attention(vectors(), vectors(), {}, {}, heads); },
                 {"local_attention: successor_heads", got});
    expect_error(
        [&] {
          full_shared_qk_attention(vectors(), vectors(), true, {}, heads);
        },
        {"full_shared_qk_attention: successor_heads", got});
  }
  const auto rounds = lsh_rounds(buckets(), {});
  expect_error(
      [&] {
        interval_attention(vectors(), vectors(), vectors(), rounds, {}, 1);
      },
      {"successor_heads require shared queries and keys"});
}

TEST(BadInput, HeadsWithoutBucketsNeedAWindow) {
  const auto attend = [](int64_t successor_heads, int64_t near_window) {
    return [=] {
      lsh_attention(vectors(), vectors(), buckets({2, 2, 4, 20}),
                    small_config(), {}, successor_heads, near_window);
    };
  };
  expect_error(attend(0, 0), {"buckets must be [2, 3, rounds, 20]",
                              "near_window", "[2, 2, 4, 20]"});
  expect_error(attend(0, -1), {"near_window must be at least 0, got -1"});
  expect_error(attend(3, 5), {"successor_heads must be among those that have "
                              "buckets, 2, got 3"});
}

TEST(BadInput, BucketsMustFitTheQueries) {
  const auto expect = [](const at::Tensor& given, const Parts& parts) {
    expect_error(
        [&] { lsh_attention(vectors(), vectors(), given, small_config()); },
        parts);
  };
  expect({}, {"lsh_attention: buckets must be", "got none"});
  expect(buckets({2, 3, 20}), {"lsh_attention: buckets", "[2, 3, 20]"});
  expect(buckets().to(at::kInt), {"lsh_attention: buckets", "uint16", "Int"});
  expect(
      buckets({2, 3, 4, 19}),
      {"lsh_attention: buckets must be [2, 3, rounds, 20]", "[2, 3, 4, 19]"});
  expect(buckets({2, 1, 4, 20}), {"lsh_attention: buckets", "[2, 1, 4, 20]"});
  expect(buckets({2, 3, 0, 20}), {"lsh_attention: rounds", "got 0"});
  expect(buckets().fill_(4),
         {"lsh_attention: buckets", "below n_buckets = 4", "got 4"});
}

TEST(BadInput, StatisticsAndRoundsCheckTheirBuckets) {
  const auto mask = at::ones({2, 19}, at::kBool);
  expect_error(
      [] {
        lsh_statistics(buckets({3, 20}), small_config());
      },
      {"lsh_statistics: buckets must be", "[3, 20]"});
  expect_error([&] { lsh_statistics(buckets(), small_config(), mask); },
               {"lsh_statistics: mask must be", "[2, 19]"});
  expect_error([&] { lsh_rounds(buckets(), small_config(), mask); },
               {"mask must be", "[2, 19]"});
  const auto endless_buckets =
      at::zeros({1, 1, 1, 1}, at::kUInt16).expand({1, 1, 1, int64_t{1} << 31});
  expect_error([&] { lsh_rounds(endless_buckets, small_config()); },
               {"length of buckets", "2147483647", "got 2147483648"});
  expect_error(
      [&] {
        lsh_rounds(buckets({2, 3, 4, 0}), small_config());
      },
      {"length of buckets", "from 1", "got 0"});
}

TEST(BadInput, RotationsNeedPossibleSizes) {
  const auto expect = [](int64_t heads, int64_t rounds, int64_t d_head,
                         int64_t n_buckets, const Parts& parts) {
    Parts all{"lsh_rotations: "};
    all.insert(all.end(), parts.begin(), parts.end());
    expect_error(
        [&] { lsh_rotations(HashKey{}, heads, rounds, d_head, n_buckets); },
        all);
  };
  expect(0, 1, 16, 4, {"heads", "at least 1", "got 0"});
  expect(1, 0, 16, 4, {"rounds", "at least 1", "got 0"});
  expect(1, 1, 7, 4, {"d_head", "from 8 to 256", "got 7"});
  expect(1, 1, 257, 4, {"d_head", "from 8 to 256", "got 257"});
  expect(1, 1, 16, 0, {"n_buckets", "got 0", "is 2"});
  expect(1, 1, 16, 3, {"n_buckets", "even", "got 3", "is 2"});
  expect(1, 1, 16, 65538, {"n_buckets", "up to 65536", "got 65538"});
}

TEST(BadInput, HashNeedsRotationsOfItsVectors) {
  const auto rotations = lsh_rotations(HashKey{}, 3, 4, 16, 8);
  const auto expect = [](const at::Tensor& x, const at::Tensor& r, int64_t n,
                         const Parts& parts) {
    Parts all{"lsh_buckets: "};
    all.insert(all.end(), parts.begin(), parts.end());
    expect_error([&] { lsh_buckets(x, r, n); }, all);
  };
  expect(vectors({3, 20, 16}), rotations, 8, {"vectors", "[3, 20, 16]"});
  expect(vectors(), rotations, 7, {"n_buckets", "got 7", "is 6"});
  expect(vectors(), rotations, 131072, {"n_buckets", "got 131072", "is 65536"});
  expect(vectors(), rotations, 16,
         {"rotations must be [3, rounds, 16, 8]", "[3, 4, 16, 4]"});
  expect(vectors({2, 2, 20, 16}), rotations, 8, {"rotations", "[3, 4, 16, 4]"});
  expect(vectors({2, 3, 20, 24}), rotations, 8, {"rotations", "[3, 4, 16, 4]"});
  expect(vectors(), rotations.to(at::kDouble), 8,
         {"rotations", "float32", "Double"});
  expect(vectors(), {}, 8, {"rotations", "none"});
  expect(vectors(), rotations.narrow(1, 0, 0), 8, {"rounds", "got 0"});
  expect(endless(16), lsh_rotations(HashKey{}, 1, 1, 16, 8), 8,
         {"length", "got 2147483648"});
}

TEST(BadInput, SortNeedsBucketsInRange) {
  expect_error(
      [] {
        bucket_sort(buckets({3, 20}), 4);
      },
      {"bucket_sort: buckets must be [batch", "[3, 20]"});
  expect_error([] { bucket_sort(buckets().to(at::kLong), 4); },
               {"bucket_sort: buckets must be uint16", "Long"});
  expect_error([] { bucket_sort(buckets().fill_(9), 9); },
               {"bucket_sort: buckets", "below n_buckets = 9", "got 9"});
  expect_error([] { bucket_sort(buckets(), 0); },
               {"bucket_sort: n_buckets", "from 1 to 65536", "got 0"});
  expect_error([] { bucket_sort(buckets(), 65537); },
               {"bucket_sort: n_buckets", "65536", "got 65537"});
  expect_error(
      [] {
        bucket_sort(buckets({2, 3, 0, 20}), 4);
      },
      {"bucket_sort: rounds", "at least 1", "got 0"});
  expect_error(
      [] {
        bucket_sort(buckets(), 4, at::ones({3, 20}, at::kBool));
      },
      {"bucket_sort: mask must be", "[2, 20]", "[3, 20]"});
}

TEST(BadInput, IntervalsNeedARuleForEachRound) {
  const auto sorted = bucket_sort(buckets(), 4);
  const std::vector<WindowRule> rules(4, {Window::kChunk, 8});
  const std::vector<WindowRule> few(3, {Window::kChunk, 8});
  const std::vector<WindowRule> none(4, {Window::kChunk, 0});
  const auto call = [](const SortedRounds& of, const auto& by) {
    lsh_intervals(buckets(), of, by, /*causal=*/true);
  };
  expect_error([&] { call(sorted, few); },
               {"lsh_intervals: one rule for each of 4", "got 3"});
  expect_error([&] { call(sorted, none); },
               {"lsh_intervals: a window must be at least 1", "got 0"});
  expect_error(
      [&] {
        call({sorted.order.narrow(3, 0, 19), {}}, rules);
      },
      {"lsh_intervals: order", "[2, 3, 4, 20]", "[2, 3, 4, 19]"});
  expect_error(
      [&] {
        call({sorted.order.to(at::kLong), {}}, rules);
      },
      {"lsh_intervals: order", "int32", "Long"});
}

TEST(BadInput, IntervalAttentionChecksItsRounds) {
  const auto good = lsh_rounds(buckets(), small_config());
  const auto expect = [&](const auto& change, const Parts& parts) {
    IntervalRounds bad{good.order.clone(), good.place.clone(),
                       good.interval.clone()};
    change(bad);
    Parts all{"interval_attention: "};
    all.insert(all.end(), parts.begin(), parts.end());
    expect_error([&] { interval_attention(vectors(), {}, vectors(), bad); },
                 all);
  };
  const Parts permutation{"order must be a permutation", "place its inverse"};
  expect([](auto& r) { r.order[1][2][3][19] = 20; }, permutation);
  expect([](auto& r) { r.order[1][2][3][19] = -1; }, permutation);
  expect([](auto& r) { r.order[1][2][3][19] = 0; }, permutation);
  expect([](auto& r) { r.place[1][2][19][3] = 20; }, permutation);
  expect([](auto& r) { r.place[0][0][0][0] = -1; }, permutation);
  expect([](auto& r) { r.place[0][0][0][0] = 1; }, permutation);
  const Parts within{"intervals must lie within [0, 20]"};
  expect([](auto& r) { r.interval[1][2][19][3][1] = 21; }, within);
  expect([](auto& r) { r.interval[0][0][0][0][0] = -1; }, within);
  expect([](auto& r) { r.interval[0][0][7][0][0] = 9; }, within);
  expect([](auto& r) { r.order.reset(); },
         {"order", "must be tensors", "none"});
  expect([](auto& r) { r.place = r.place.to(at::kLong); },
         {"int32", "place", "Long"});
  expect([](auto& r) { r.order = r.order[0]; },
         {"order must be", "[3, 4, 20]"});
  expect([](auto& r) { r.order = r.order.narrow(2, 0, 0); },
         {"rounds must be at least 1", "got 0"});
  expect([](auto& r) { r.order = r.order.narrow(1, 0, 2); },
         {"order must be", "[2, 2, 4, 20]"});
  expect([](auto& r) { r.order = r.order.narrow(3, 0, 19); },
         {"order must be", "[2, 3, 4, 19]"});
  expect([](auto& r) { r.place = r.place.narrow(3, 0, 3); },
         {"place must be [2, 3, 20, 4]", "[2, 3, 20, 3]"});
  expect([](auto& r) { r.interval = r.interval.narrow(4, 0, 1); },
         {"interval must be [2, 3, 20, 4, 2]", "[2, 3, 20, 4, 1]"});
}

TEST(BadInput, SeparateKeysMustBeLikeQueries) {
  const auto rounds = lsh_rounds(buckets(), small_config());
  expect_error(
      [&] {
        interval_attention(vectors(), vectors({2, 3, 19, 16}), vectors(),
                           rounds);
      },
      {"interval_attention: k must", "[2, 3, 20, 16]", "[2, 3, 19, 16]"});
  const auto other = vectors({2, 3, 30, 16});
  expect_error(
      [&] { full_attention(vectors(), other, other, /*causal=*/true); },
      {"full_attention: k must", "[2, 3, 20, 16]", "[2, 3, 30, 16]"});
  const auto wide = vectors({2, 3, 30, 24});
  expect_error([&] { full_attention(vectors(), wide, wide, /*causal=*/false); },
               {"full_attention: k must", "[2, 3, 20, 16]", "[2, 3, 30, 24]"});
  const auto exact = vectors().to(at::kDouble);
  expect_error(
      [&] { full_attention(vectors(), exact, exact, /*causal=*/false); },
      {"full_attention: k must", "Float", "Double"});
}

TEST(BadInput, LocalSettingsAreChecked) {
  expect_error(
      [] { local_attention(vectors(), vectors(), {/*chunk_length=*/0}); },
      {"local_attention: chunk_length must be at least 1", "got 0"});
}

}  // namespace
}  // namespace reformer
