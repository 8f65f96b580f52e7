#include "reformer/ops/huggingface_lsh.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "reformer/ops/local_attention.h"
#include "reformer/ops/lsh_rotations.h"

namespace reformer {
namespace {

const HuggingfaceLsh kLsh{/*chunk_length=*/16, /*multiple=*/48,
                          /*shortest=*/16, /*factors=*/{8, 4}};

struct Tensors {
  at::Tensor q, k, v, d_output;
};

Tensors drawn(at::Device device) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(11);
  const auto one = [&] {
    return at::randn({2, 3, 130, 24}, generator, at::kFloat)
        .to(device)
        .set_requires_grad(true);
  };
  return {one(), one(), one(), one().detach()};
}

void expect_near(const at::Tensor& gpu, const at::Tensor& cpu) {
  EXPECT_LT((gpu.cpu() - cpu).abs().max().item<double>(),
            1e-4 * cpu.abs().max().item<double>());
}

at::Tensor rotations_on(at::Device device) {
  return rotations_of_columns({.seed = 3}, 3, /*rounds=*/2, 24, /*columns=*/6,
                              device);
}

TEST(CudaHuggingfaceLsh, IsTheCpus) {
  const auto cpu = drawn(at::kCPU);
  const auto gpu = drawn(at::kCUDA);
  const auto buckets =
      huggingface_lsh_buckets(cpu.q, rotations_on(at::kCPU), kLsh.factors);
  const auto there =
      huggingface_lsh_buckets(gpu.q, rotations_on(at::kCUDA), kLsh.factors);
  const auto differ = (there.cpu().to(at::kInt) != buckets.to(at::kInt));
  EXPECT_LT(differ.sum().item<int64_t>(), 3);  // by rounding alone
  const auto run = [&](const Tensors& given) {
    const auto output = huggingface_lsh_attention(
        given.q, given.v, buckets.to(given.q.device()), kLsh);
    torch::autograd::backward({output}, {given.d_output});
    return output;
  };
  expect_near(run(gpu), run(cpu));
  expect_near(gpu.q.grad(), cpu.q.grad());
  expect_near(gpu.v.grad(), cpu.v.grad());
}

TEST(CudaLocalAttention, OfSeparateKeysIsTheCpus) {
  const auto cpu = drawn(at::kCPU);
  const auto gpu = drawn(at::kCUDA);
  const auto run = [](const Tensors& given) {
    const auto output = local_attention_separate_qk(given.q, given.k, given.v,
                                                    {/*chunk_length=*/16});
    torch::autograd::backward({output}, {given.d_output});
    return output;
  };
  expect_near(run(gpu), run(cpu));
  expect_near(gpu.q.grad(), cpu.q.grad());
  expect_near(gpu.k.grad(), cpu.k.grad());
  expect_near(gpu.v.grad(), cpu.v.grad());
}

}  // namespace
}  // namespace reformer
