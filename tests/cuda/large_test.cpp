// More than 2^31 elements in a tensor, as a step of millions of tokens has:
// what lies beyond is computed as it is alone.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "reformer/ops/activation_gradient.h"
#include "reformer/ops/counter_dropout.h"
#include "reformer/ops/embedding_gradient.h"
#include "reformer/ops/layer_norm.h"
#include "reformer/ops/local_attention.h"
#include "reformer/ops/lsh_attention.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

constexpr int64_t kTooManyForInt32 = int64_t{1} << 31;

at::Tensor drawn(at::IntArrayRef sizes, at::ScalarType type) {
  return at::empty(sizes, at::TensorOptions(at::kCUDA).dtype(type)).normal_();
}

// The last of dimension `dim`, as a tensor of its own.
at::Tensor last(const at::Tensor& x, int64_t dim, int64_t count) {
  return x.narrow(dim, x.size(dim) - count, count).clone();
}

TEST(LargeCuda, LayerNormAndItsGradient) {
  const auto x = drawn({2'100'000, 1024}, at::kFloat);
  ASSERT_GT(x.numel(), kTooManyForInt32);
  const NormWeights norm{drawn({1024}, at::kFloat), drawn({1024}, at::kFloat)};
  const auto normed = layer_norm_forward(x, norm, at::kBFloat16);
  const auto alone = layer_norm_forward(last(x, 0, 5), norm, at::kBFloat16);
  EXPECT_TRUE(at::equal(last(normed.y, 0, 5), alone.y));

  const auto d_y = drawn(x.sizes(), at::kBFloat16);
  const auto gradient = [&](const Normed& of, const at::Tensor& d) {
    const auto d_x = at::zeros(of.x.sizes(), of.x.options());
    add_layer_norm_gradients(of, norm, d,
                             {d_x, at::zeros({1024}, of.x.options()),
                              at::zeros({1024}, of.x.options())});
    return last(d_x, 0, 5);
  };
  EXPECT_TRUE(
      at::equal(gradient(normed, d_y), gradient(alone, last(d_y, 0, 5))));
}

TEST(LargeCuda, GeluGradient) {
  const auto x = drawn({525'000, 4096}, at::kBFloat16);
  ASSERT_GT(x.numel(), kTooManyForInt32);
  const auto d = drawn(x.sizes(), at::kBFloat16);
  const auto own_d = last(d, 0, 5);
  const auto sums = at::zeros({4096}, x.options().dtype(at::kFloat));
  activation_gradient(own_d, last(x, 0, 5), sums.clone(), Activation::kGelu);
  activation_gradient(d, x, sums, Activation::kGelu);
  EXPECT_TRUE(at::equal(last(d, 0, 5), own_d));
}

TEST(LargeCuda, Dropout) {
  const auto x = drawn({1, 2'100'000, 1024}, at::kBFloat16);
  ASSERT_GT(x.numel(), kTooManyForInt32);
  const DropoutKey key{1, 2, 3};
  const auto all = counter_dropout(x, {0.3, key});
  const auto alone = counter_dropout(last(x, 1, 5), {0.3, key, x.size(1) - 5});
  EXPECT_TRUE(at::equal(last(all, 1, 5), alone));
}

TEST(LargeCuda, EmbeddingGradient) {
  const int64_t count = 2'100'000;
  const auto d = drawn({count, 1024}, at::kFloat);
  ASSERT_GT(d.numel(), kTooManyForInt32);
  const auto options = at::TensorOptions(at::kCUDA).dtype(at::kLong);
  const auto indices = at::randint(256, {count}, options);
  indices.narrow(0, count - 5, 5).fill_(256);
  const auto sum = at::zeros({257, 1024}, d.options());
  add_embedding_gradient(sum, indices, d);
  const auto expected = last(d, 0, 5).to(at::kDouble).sum(0);
  EXPECT_LT((sum[256] - expected).abs().max().item<double>(), 1e-5);
}

struct Attended {
  at::Tensor output;
  at::Tensor d_qk;
  at::Tensor d_v;
};

template <class Attention>
Attended attended(const at::Tensor& qk, const at::Tensor& v,
                  const at::Tensor& d_output, const Attention& attention) {
  const auto own_qk = qk.detach().requires_grad_();
  const auto own_v = v.detach().requires_grad_();
  const auto output = attention(own_qk, own_v);
  output.backward(d_output);
  return {output.detach(), own_qk.grad(), own_v.grad()};
}

TEST(LargeCuda, LshAttentionOfManySequences) {
  const std::vector<int64_t> sizes{66, 8, 65536, 64};
  const auto qk = drawn(sizes, at::kBFloat16);
  ASSERT_GT(qk.numel(), kTooManyForInt32);
  const auto v = drawn(sizes, at::kBFloat16);
  const auto d_output = drawn(sizes, at::kBFloat16);
  LshConfig config;
  config.rounds = 2;
  config.local_window = 64;
  const auto attention = [&](const at::Tensor& x, const at::Tensor& y) {
    return lsh_attention(x, y, config, HashKey{1, 2, 3});
  };
  const auto all = attended(qk, v, d_output, attention);
  const auto alone =
      attended(last(qk, 0, 1), last(v, 0, 1), last(d_output, 0, 1), attention);
  EXPECT_TRUE(at::equal(last(all.output, 0, 1), alone.output));
  EXPECT_TRUE(at::equal(last(all.d_qk, 0, 1), alone.d_qk));
  EXPECT_TRUE(at::equal(last(all.d_v, 0, 1), alone.d_v));
}

double relative_error(const at::Tensor& x, const at::Tensor& y) {
  const auto exact = y.to(at::kDouble);
  return (x.to(at::kDouble) - exact).norm().item<double>() /
         exact.norm().item<double>();
}

// The last positions have buckets of their own: nobody else sees them, and they
// see nobody else.
TEST(LargeCuda, LshAttentionOfALongSequence) {
  constexpr int64_t kOwn = 4096;
  constexpr int64_t kBuckets = 16384;
  const std::vector<int64_t> sizes{1, 8, 4'200'000, 64};
  const auto qk = drawn(sizes, at::kBFloat16);
  ASSERT_GT(qk.numel(), kTooManyForInt32);
  const auto v = drawn(sizes, at::kBFloat16);
  const auto d_output = drawn(sizes, at::kBFloat16);
  const auto ids = [](int64_t from, int64_t to, int64_t count) {
    return at::randint(from, to, {1, 8, 2, count},
                       at::TensorOptions(at::kCUDA).dtype(at::kLong));
  };
  const auto buckets = at::cat({ids(0, kBuckets - 64, sizes[2] - kOwn),
                                ids(kBuckets - 64, kBuckets, kOwn)},
                               3)
                           .to(at::kUInt16);
  LshConfig config;
  config.n_buckets = kBuckets;
  const auto with = [&](const at::Tensor& used) {
    return [&, used](const at::Tensor& x, const at::Tensor& y) {
      return lsh_attention(x, y, used, config);
    };
  };
  const auto all = attended(qk, v, d_output, with(buckets));
  const auto alone =
      attended(last(qk, 2, kOwn), last(v, 2, kOwn), last(d_output, 2, kOwn),
               with(last(buckets, 3, kOwn)));
  EXPECT_LT(relative_error(last(all.output, 2, kOwn), alone.output), 0.01);
  EXPECT_LT(relative_error(last(all.d_qk, 2, kOwn), alone.d_qk), 0.01);
  EXPECT_LT(relative_error(last(all.d_v, 2, kOwn), alone.d_v), 0.01);
}

}  // namespace
}  // namespace reformer
