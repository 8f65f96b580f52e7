// Everything on a GPU that gives a block 99 KB, as those of compute capability
// 8.6 and 8.9 do.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "reformer/base/errors.h"
#include "reformer/ops/linear.h"
#include "reformer/ops/lsh_attention.h"
#include "tests/cuda/beyond_99_kb.h"
#include "tests/cuda/interval_attention_device.h"
#include "tests/cuda/interval_attention_tolerance.h"
#include "tests/cuda/less_shared_memory.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

constexpr int kSmall = 99 * 1024;
const at::Device kGpu(at::kCUDA, 0);

TEST(CudaSmallSharedMemory, AttentionOfManyRoundsAndOwnKeysIsAsGood) {
  using kernels::DeviceProblem;
  const LessSharedMemory less(kSmall);
  for (const int64_t length : {70, 777}) {
    for (const auto& c : kernels::cases_beyond_99_kb(length)) {
      SCOPED_TRACE(c.name());
      const auto p = kernels::make_problem<__nv_bfloat16>(c);
      const DeviceProblem<__nv_bfloat16> device(p);
      const auto got = device.run();
      kernels::expect_as_good<__nv_bfloat16>(got, p);
      kernels::expect_same_bits(got, device.run());
    }
  }
}

TEST(CudaSmallSharedMemory, AttentionThatFitsIsTheSameBits) {
  kernels::Case c;
  c.length = 777;
  c.rounds = 8;
  const kernels::DeviceProblem<__nv_bfloat16> device(
      kernels::make_problem<__nv_bfloat16>(c));
  const auto wanted = device.run();
  const LessSharedMemory less(kSmall);
  kernels::expect_same_bits(device.run(), wanted);
}

// The whole operation: hashes, sort, intervals, attention, both ways.
TEST(CudaSmallSharedMemory, LshAttentionTakesEveryNumberOfRoundsAndBuckets) {
  const LessSharedMemory less(kSmall);
  for (const int64_t rounds : {1, 15, 64}) {
    for (const int64_t n_buckets : {2, 128, 2048, 65536}) {
      LshConfig config;
      config.rounds = rounds;
      config.n_buckets = n_buckets;
      const auto qk = normal({1, 2, 300, 128}, 1)
                          .to(kGpu, at::kBFloat16)
                          .set_requires_grad(true);
      const auto output = lsh_attention(qk, qk, config, HashKey{});
      output.sum().backward();
      EXPECT_TRUE(qk.grad().isfinite().all().item<bool>())
          << rounds << " rounds, " << n_buckets << " buckets";
    }
  }
}

// By two launches of four rows, which see nothing of each other.
TEST(CudaSmallSharedMemory, ProductsOfUpToEightWideRowsAreThoseOfFewer) {
  const at::NoGradGuard no_grad;
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const int64_t width = type == at::kFloat ? 4096 : 8192;
    const auto weight = normal({40, width}, 1).div(64).to(kGpu, type);
    const auto bias = normal({40}, 2).to(kGpu);
    const NormWeights norm{normal({width}, 3).to(kGpu),
                           normal({width}, 4).to(kGpu)};
    for (const int64_t rows : {5, 8}) {
      const auto x = normal({rows, width}, 5).to(kGpu);
      const auto products = [&](const at::Tensor& some) {
        auto y = at::zeros({some.size(0), 40}, x.options());
        add_linear(some.to(type), {weight, bias}, y);
        const auto normed = norm_linear(
            some, norm, {{weight, bias}, {weight, {}}}, {type, type});
        return std::vector<at::Tensor>{y, normed[0], normed[1]};
      };
      const LessSharedMemory less(kSmall);
      const auto together = products(x);
      const auto first = products(x.narrow(0, 0, 4));
      const auto others = products(x.narrow(0, 4, rows - 4));
      for (size_t i = 0; i < together.size(); ++i) {
        EXPECT_TRUE(together[i].narrow(0, 0, 4).equal(first[i])) << i;
        const auto rest = together[i].narrow(0, 4, rows - 4).to(at::kDouble);
        const double most = 1e-2 * rest.abs().max().item<double>();
        EXPECT_LE((rest - others[i].to(at::kDouble)).abs().max().item<double>(),
                  most)
            << i;
      }
    }
  }
}

}  // namespace
}  // namespace reformer
