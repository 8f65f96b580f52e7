#include "reformer/ops/huggingface_lsh.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kHeads = 2;
constexpr int64_t kRounds = 3;
constexpr int64_t kHead = 8;

const HuggingfaceLsh kLsh{/*chunk_length=*/4, /*multiple=*/12, /*shortest=*/3,
                          /*factors=*/{2, 4}};

struct Problem {
  at::Tensor qk;
  at::Tensor v;
  at::Tensor buckets;
};

Problem problem(int64_t length) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
  const auto drawn = [&] {
    return at::randn({kBatch, kHeads, length, kHead}, generator, at::kDouble);
  };
  return {drawn() * 3, drawn(),
          at::randint(0, kLsh.n_buckets(), {kBatch, kHeads, kRounds, length},
                      generator, at::kLong)
              .to(at::kUInt16)};
}

// The positions that a round's places hold, -1: padding.
std::vector<int64_t> sorted_round(const at::Tensor& buckets, int64_t padded) {
  std::vector<int64_t> positions;
  for (int64_t bucket = 0; bucket < kLsh.n_buckets(); ++bucket) {
    for (int64_t i = 0; i < buckets.size(0); ++i) {
      if (buckets[i].item<int64_t>() == bucket) positions.push_back(i);
    }
  }
  positions.resize(static_cast<size_t>(padded), -1);
  return positions;
}

// Word by word what transformers does, for one head: a list of what position i
// sees in each round, the same as often as it is found.
std::vector<int64_t> seen_by(int64_t i, const at::Tensor& buckets) {
  const int64_t length = buckets.size(1);
  const int64_t padded = kLsh.padded(length);
  std::vector<int64_t> all;  // rounds behind each other
  for (int64_t round = 0; round < kRounds; ++round) {
    const auto sorted = sorted_round(buckets[round], padded);
    all.insert(all.end(), sorted.begin(), sorted.end());
  }
  const int64_t m = kLsh.chunk_length;
  const auto places = static_cast<int64_t>(all.size());
  std::vector<int64_t> seen;
  for (int64_t place = 0; place < places; ++place) {
    if (all[size_t(place)] != i) continue;
    const int64_t chunk = place / m * m;
    for (int64_t at = chunk - m; at < chunk + m; ++at) {
      seen.push_back(all[size_t((at + places) % places)]);
    }
  }
  return seen;
}

at::Tensor reference(const Problem& given) {
  const auto& [qk, v, buckets] = given;
  auto output = at::zeros_like(v);
  const int64_t length = qk.size(2);
  for (int64_t row = 0; row < kBatch * kHeads; ++row) {
    const int64_t b = row / kHeads;
    const int64_t h = row % kHeads;
    const auto q = qk[b][h];
    for (int64_t i = 0; i < length; ++i) {
      std::vector<int64_t> seen(static_cast<size_t>(length));
      std::iota(seen.begin(), seen.end(), 0);
      if (!kLsh.sees_all(length)) {
        seen = seen_by(i, buckets[b][h].to(at::kLong));
      }
      auto sum = at::zeros({kHead}, at::kDouble);
      double total = 0;
      bool alone = true;
      for (const int64_t j : seen) {
        if (j < 0 || j >= i) continue;
        const double norm =
            std::sqrt(q[j].square().mean().item<double>() + 1e-6);
        const double score =
            (q[i] * q[j]).sum().item<double>() / norm / std::sqrt(kHead);
        total += std::exp(score);
        sum += v[b][h][j] * std::exp(score);
        alone = false;
      }
      output[b][h][i].copy_(alone ? v[b][h][i] : sum / total);
    }
  }
  return output;
}

TEST(HuggingfaceLshAttention, IsTheirSoftmaxOverChunksOfSortedPlaces) {
  for (const int64_t length : {1, 3, 4, 5, 12, 25, 36}) {
    const auto given = problem(length);
    const auto output =
        huggingface_lsh_attention(given.qk, given.v, given.buckets, kLsh);
    EXPECT_LT((output - reference(given)).abs().max().item<double>(), 1e-9)
        << length;
  }
}

TEST(HuggingfaceLshAttention, GradientsAreFiniteDifferences) {
  constexpr double kStep = 1e-6;
  auto given = problem(17);
  const auto weights = problem(17).v.flip(2);
  const auto loss = [&](const at::Tensor& qk, const at::Tensor& v) {
    return (huggingface_lsh_attention(qk, v, given.buckets, kLsh) * weights)
        .sum();
  };
  given.qk.set_requires_grad(true);
  given.v.set_requires_grad(true);
  torch::autograd::backward({loss(given.qk, given.v)}, {});
  const auto qk = given.qk.detach();
  const auto v = given.v.detach();
  const auto direction = weights.flip(3);
  const auto slope = [&](const at::Tensor& d_qk, const at::Tensor& d_v) {
    return ((loss(qk + d_qk * kStep, v + d_v * kStep) -
             loss(qk - d_qk * kStep, v - d_v * kStep)) /
            (2 * kStep))
        .item<double>();
  };
  const auto none = at::zeros_like(v);
  EXPECT_NEAR(slope(direction, none),
              (given.qk.grad() * direction).sum().item<double>(), 1e-5);
  EXPECT_NEAR(slope(none, direction),
              (given.v.grad() * direction).sum().item<double>(), 1e-5);
}

TEST(HuggingfaceLshBuckets, AreArgmaximaTheFirstFactorLeastSignificant) {
  // Two columns of the first factor, three of the second; one vector each way.
  const auto x = at::zeros({1, 1, 2, kHead}, at::kFloat);
  x[0][0][0][0] = 1;
  x[0][0][1][0] = -1;
  const auto rotations = at::zeros({1, 1, kHead, 5}, at::kFloat);
  rotations[0][0][0][1] = 2;  // argmax of [r; -r]: 1, or 2 + 1
  rotations[0][0][0][4] = 1;  // 2, or 3 + 2
  const auto buckets = huggingface_lsh_buckets(x, rotations, {4, 6});
  EXPECT_EQ(buckets[0][0][0][0].item<int64_t>(), 1 + 4 * 2);
  EXPECT_EQ(buckets[0][0][0][1].item<int64_t>(), 3 + 4 * 5);
}

TEST(HuggingfaceLsh, PadsAsTransformersDoes) {
  EXPECT_EQ(kLsh.padded(3), 3);
  EXPECT_EQ(kLsh.padded(4), 12);
  EXPECT_EQ(kLsh.padded(24), 24);
  EXPECT_TRUE(kLsh.sees_all(3));
  EXPECT_FALSE(kLsh.sees_all(4));  // padded to more than a chunk
}

TEST(HuggingfaceLshAttention, WrongBucketsAreRefused) {
  const auto given = problem(9);
  EXPECT_THROW(huggingface_lsh_attention(given.qk, given.v,
                                         given.buckets.narrow(3, 0, 8), kLsh),
               Error);
}

}  // namespace
}  // namespace reformer
