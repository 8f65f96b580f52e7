// Position after position on a GPU, beside the CPU's lists and float64.
#include "reformer/generate/attend_next.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "tests/support/cases.h"
#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);
constexpr int64_t kHeads = 3;

struct Case {
  std::vector<int64_t> prompts;  // a row each
  int64_t steps;
  int64_t d_head;
  BucketShape buckets;  // batch and heads are set by Texts
  EarlierPositions earlier;
  bool shared_qk = true;
  int64_t reach = 0;
  int64_t successor_heads = 0;

  int64_t batch() const { return static_cast<int64_t>(prompts.size()); }
};

// Rows, with keys as the cache keeps them, and buckets, of all positions.
struct Texts {
  Texts(const Case& c, at::ScalarType rounded, uint64_t seed) {
    const int64_t longest =
        *std::max_element(c.prompts.begin(), c.prompts.end());
    const std::vector<int64_t> sizes = {c.batch(), kHeads, longest + c.steps,
                                        c.d_head};
    q = make_queries(Queries::kSomeZero, sizes, seed).mul(1.5);
    for (int64_t i = 1; i < sizes[2]; i += 5) {
      q.select(2, i).mul_(1e-9);  // too short for keys
    }
    q = q.to(rounded);
    k = c.shared_qk ? q : normal(sizes, seed + 1).to(rounded);
    v = normal(sizes, seed + 2).to(rounded);
    shape = c.buckets;
    shape.batch = c.batch();
    shape.heads = kHeads;
    if (shape.rounds == 0) return;
    buckets =
        at::empty({c.batch(), kHeads, shape.rounds, sizes[2]}, at::kUInt16);
    std::mt19937 random(static_cast<uint32_t>(seed));
    for (int64_t i = 0; i < buckets.numel(); ++i) {
      buckets.mutable_data_ptr<uint16_t>()[i] =
          static_cast<uint16_t>(random() % shape.n_buckets);
    }
  }

  at::Tensor q, k, v, buckets;
  BucketShape shape;
};

// One position of each row, [batch, heads, ..., 1, ...].
at::Tensor at_positions(const at::Tensor& x, int64_t dim,
                        const std::vector<int64_t>& positions) {
  if (!x.defined()) return x;
  auto sizes = x.sizes().vec();
  sizes[dim] = 1;
  auto rows = at::empty(sizes, x.options());
  for (std::size_t row = 0; row < positions.size(); ++row) {
    rows[row].copy_(x[row].narrow(dim - 1, positions[row], 1));
  }
  return rows;
}

// What attends: a cache with its lists, on one device.
struct Attention {
  Attention(const Case& c, const Texts& texts, at::ScalarType type,
            at::Device where)
      : earlier(c.earlier),
        device(where),
        cache({c.batch(), kHeads, c.d_head, c.shared_qk && where.is_cuda(),
               type, c.reach, where.is_cuda() ? texts.shape.rounds : 0, where,
               c.successor_heads}),
        members(texts.shape, where) {}

  at::Tensor here(const at::Tensor& x) const {
    if (!x.defined()) return x;
    return x.scalar_type() == at::kUInt16 ? x.to(device)
                                          : x.to(device, cache.type());
  }
  void read(const at::Tensor& k, const Texts& texts,
            const std::vector<int64_t>& counts) {
    const auto buckets = here(texts.buckets);
    cache.append(here(k), here(texts.v), counts,
                 cache.config().rounds > 0 ? buckets : at::Tensor());
    members.append(buckets, std::vector<int64_t>(counts.size(), 0), counts);
  }
  at::Tensor step(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& buckets) {
    const auto position = cache.lengths();
    cache.extend(std::vector<int64_t>(position.size(), 1));
    return attend_next(
        {here(q), here(k), here(v), here(buckets), copied_to(position, device)},
        earlier, cache, members);
  }

  EarlierPositions earlier;
  at::Device device;
  KeyValueCache cache;
  BucketHistory members;
};

// float64 on the CPU is given the unit keys that the GPU rounds to its type, so
// that all that is left is the rounding of the output, and of fp32 sums.
void expect_right(const Case& c, at::ScalarType type, const std::string& name) {
  const Texts texts(c, type, /*seed=*/17);
  const auto keys = c.shared_qk ? reference::unit_keys(texts.q.to(at::kDouble))
                                      .to(type)
                                      .to(at::kDouble)
                                : texts.k.to(at::kDouble);
  // The CPU's keys are separate ones, whose scores it divides by this.
  const double scale = c.shared_qk ? std::sqrt(double(c.d_head)) : 1;
  Attention exact(c, texts, at::kDouble, at::kCPU);
  Attention fast(c, texts, type, kGpu);
  exact.read(keys, texts, c.prompts);
  fast.read(texts.k, texts, c.prompts);
  auto positions = c.prompts;
  for (int64_t step = 0; step < c.steps; ++step) {
    const auto now = [&](const at::Tensor& x, int64_t dim) {
      return at_positions(x, dim, positions);
    };
    const auto buckets = now(texts.buckets, 3);
    const auto q = now(texts.q, 2);
    const auto expected = exact.step(q.to(at::kDouble) * scale, now(keys, 2),
                                     now(texts.v, 2), buckets);
    const auto found =
        fast.step(q, c.shared_qk ? at::Tensor() : now(texts.k, 2),
                  now(texts.v, 2), buckets);
    const double largest = expected.abs().max().item<double>();
    const double bar =
        type == at::kBFloat16 ? 0x1p-8 * largest : 1e-5 * largest;
    ASSERT_LE(max_error(found.cpu().to(at::kDouble), expected), bar)
        << name << ", step " << step;
    for (auto& position : positions) ++position;
  }
}

void expect_right(const Case& c, const std::string& name) {
  expect_right(c, at::kFloat, name + ", float32");
  expect_right(c, at::kBFloat16, name + ", bfloat16");
}

TEST(CudaAttendNext, IsTheSoftmaxOverTheUnionOfRangeAndBuckets) {
  struct Sizes {
    int64_t d_head;
    int64_t rounds;
    int64_t n_buckets;
    int64_t window;
    int64_t local;
  };
  for (const auto& [d_head, rounds, n_buckets, window, local] :
       {Sizes{8, 1, 2, 7, 0},
        {64, 3, 4, 7, 5},
        {120, 8, 6, 40, 0},
        {128, 4, 2, 128, 200},
        {40, 2, 2, 300, 9},
        {64, 5, 1000, 16, 1},
        {64, 64, 8, 3, 2}}) {
    Case c{{70, 0, 500, 1, 33},
           45,
           d_head,
           {0, 0, rounds, n_buckets, window},
           {local}};
    c.successor_heads = d_head % 3;
    expect_right(c, "d_head " + std::to_string(d_head) + ", rounds " +
                        std::to_string(rounds) + ", window " +
                        std::to_string(window));
  }
}

TEST(CudaAttendNext, InGroupsAPairWeighsAsMuchAsGroupsSeeIt) {
  for (const int64_t together : {1, 2, 3, 5}) {
    for (const int64_t local : {0, 9}) {
      Case c{{70, 0, 500, 1, 33}, 45, 64, {0, 0, 5, 4, 40, together}, {local}};
      c.successor_heads = 1;
      expect_right(c, std::to_string(together) + " of 5 rounds together");
    }
  }
}

TEST(CudaAttendNext, SeesRangesOfEveryKind) {
  constexpr int64_t kAll = EarlierPositions::kAll;
  expect_right({{1020, 0, 1}, 12, 64, {}, {kAll}}, "all before");
  expect_right({{1020, 0, 3}, 12, 64, {}, {kAll, 0, /*itself=*/true}, false},
               "all and itself");
  expect_right({{9000}, 3, 16, {}, {kAll, 0, /*itself=*/true}, false},
               "more than the parts' tiles");
  expect_right({{20, 5}, 40, 16, {}, {7, 7}}, "chunks");
  expect_right({{2040, 1}, 20, 16, {}, {1029}, true, 1030}, "limited reach");
  expect_right({{20000, 5000}, 3, 16, {}, {1000}, true, 1001},
               "prompts far longer than the reach");
  expect_right({{5, 0}, 5, 16, {}, {0}}, "nobody");
}

TEST(CudaAttendNext, OffersTheValuesOfSuccessors) {
  constexpr int64_t kAll = EarlierPositions::kAll;
  expect_right({{1020, 0, 1}, 12, 64, {}, {kAll}, true, 0, 2}, "all before");
  expect_right({{20, 5}, 40, 16, {}, {7, 7}, true, 0, 1}, "chunks");
  expect_right({{2040, 1}, 20, 16, {}, {1029}, true, 1030, 3}, "limited reach");
  expect_right({{20000, 5000}, 3, 16, {}, {1000}, true, 1001, 2},
               "prompts far longer than the reach");
  expect_right({{5, 0}, 5, 16, {}, {0}, true, 0, 3}, "nobody");
}

TEST(CudaAttendNext, ARowIsTheSameBitsAloneAndBesideALongerOne) {
  for (const auto& earlier :
       {EarlierPositions{3}, EarlierPositions{EarlierPositions::kAll}}) {
    const Case together{{300, 2000}, 30, 64, {0, 0, 3, 4, 20}, earlier};
    const Texts texts(together, at::kBFloat16, 5);
    Attention both(together, texts, at::kBFloat16, kGpu);
    both.read(texts.k, texts, together.prompts);
    Case alone = together;
    alone.prompts = {300};
    Texts first = texts;
    for (auto* x : {&first.q, &first.k, &first.v, &first.buckets}) {
      *x = x->narrow(0, 0, 1);
    }
    first.shape.batch = 1;
    Attention one(alone, first, at::kBFloat16, kGpu);
    one.read(first.k, first, alone.prompts);
    for (int64_t step = 0; step < 30; ++step) {
      const std::vector<int64_t> at = {300 + step, 2000 + step};
      const auto a = both.step(at_positions(texts.q, 2, at), {},
                               at_positions(texts.v, 2, at),
                               at_positions(texts.buckets, 3, at));
      const auto b = one.step(at_positions(first.q, 2, {at[0]}), {},
                              at_positions(first.v, 2, {at[0]}),
                              at_positions(first.buckets, 3, {at[0]}));
      ASSERT_TRUE(a[0].equal(b[0])) << step;
    }
  }
}

TEST(CudaAttendNext, LargeScoresDoNotOverflow) {
  const Case c{{100}, 3, 16, {0, 0, 2, 2, 50}, {9}};
  Texts texts(c, at::kFloat, 3);
  texts.q.mul_(1e6);
  texts.k = texts.q;
  Attention fast(c, texts, at::kFloat, kGpu);
  fast.read(texts.k, texts, c.prompts);
  const auto found = fast.step(at_positions(texts.q, 2, {100}), {},
                               at_positions(texts.v, 2, {100}),
                               at_positions(texts.buckets, 3, {100}));
  EXPECT_TRUE(found.isfinite().all().item<bool>());
}

TEST(CudaAttendNext, RefusesWhatDoesNotFit) {
  const Case c{{5, 7}, 2, 16, {0, 0, 2, 2, 50}, {9}};
  const Texts texts(c, at::kFloat, 3);
  Attention fast(c, texts, at::kFloat, kGpu);
  fast.read(texts.k, texts, c.prompts);
  const auto now = [](const at::Tensor& x, int64_t dim) {
    return at_positions(x, dim, {5, 7});
  };
  const auto q = now(texts.q, 2);
  const auto buckets = now(texts.buckets, 3);
  EXPECT_THROW(fast.step(texts.q, {}, texts.v, buckets), Error);
  EXPECT_THROW(fast.step(q, {}, now(texts.v, 2), texts.buckets), Error);
  EXPECT_THROW(fast.read(texts.k, texts, c.prompts), Error);  // a second time
  Case far = c;
  far.reach = 9;  // of which one is the query's own
  Attention short_sighted(far, texts, at::kFloat, kGpu);
  short_sighted.read(texts.k, texts, c.prompts);
  EXPECT_THROW(short_sighted.step(q, {}, now(texts.v, 2), buckets), Error);
}

}  // namespace
}  // namespace reformer
