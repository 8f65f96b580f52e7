// The whole operation on the GPU: the CPU's function, its errors and its
// memory. The kernel's own accuracy is interval_attention_test's matter.
#include "reformer/ops/lsh_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <vector>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/device/memory_meter.h"
#include "reformer/ops/full_attention.h"
#include "reformer/ops/local_attention.h"
#include "tests/support/cases.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

using Operation =
    std::function<at::Tensor(const at::Tensor& qk, const at::Tensor& v)>;

AttentionAnswer answer_on(at::Device device, at::ScalarType type,
                          const AttentionInputs& inputs,
                          const Operation& operation) {
  const auto leaf = [&](const at::Tensor& x) {
    return x.to(device, type, /*non_blocking=*/false, /*copy=*/true)
        .set_requires_grad(true);
  };
  const auto qk = leaf(inputs.q);
  const auto v = leaf(inputs.v);
  const auto output = operation(qk, v);
  output.backward(inputs.d_output.to(device, type));
  const auto plain = [](const at::Tensor& x) { return x.cpu().to(at::kFloat); };
  return {plain(output), {}, plain(qk.grad()), {}, plain(v.grad())};
}

double norm_of(const at::Tensor& x) { return x.norm().item<double>(); }

// By norms, so that a gradient that is 0 where it should not be is found. That
// of a query with little to choose from is a difference of numbers of the size
// of d_v.
void expect_near(const AttentionAnswer& a, const AttentionAnswer& b,
                 double tolerance) {
  const auto expect = [&](const char* name, const at::Tensor& x,
                          const at::Tensor& y) {
    const double size = std::max(norm_of(y), 0.05 * norm_of(b.d_v));
    EXPECT_LE(norm_of(x - y), tolerance * size) << name;
  };
  expect("output", a.output, b.output);
  expect("d_q", a.d_q, b.d_q);
  expect("d_v", a.d_v, b.d_v);
  if (b.d_k.defined()) expect("d_k", a.d_k, b.d_k);
}

// Inputs as bfloat16 has them: both devices compute with the same numbers.
AttentionInputs rounded(AttentionInputs inputs) {
  for (auto* x : {&inputs.q, &inputs.v, &inputs.d_output}) {
    *x = x->to(at::kBFloat16).to(at::kFloat);
  }
  return inputs;
}

TEST(LshAttentionCuda, IsTheCpusFunction) {
  for (const auto padding : {Padding::kNone, Padding::kScattered}) {
    for (const int64_t local_window : {0, 16}) {
      LshConfig config;
      config.rounds = 3;
      config.chunk_length = 32;
      config.n_buckets = 16;
      config.local_window = local_window;
      const auto inputs =
          rounded(make_inputs(Queries::kRandom, padding, {2, 2, 333, 64}, 3));
      const auto buckets = lsh_attention_buckets(inputs.q.nan_to_num(), config,
                                                 HashKey{1, 2, 3});
      const auto on = [&](at::Device device) {
        return [&, device](const at::Tensor& qk, const at::Tensor& v) {
          const auto mask =
              inputs.mask.defined() ? inputs.mask.to(device) : inputs.mask;
          return lsh_attention(qk, v, buckets.to(device), config, mask);
        };
      };
      const auto expected =
          answer_on(at::kCPU, at::kFloat, inputs, on(at::kCPU));
      expect_near(answer_on(at::kCUDA, at::kFloat, inputs, on(at::kCUDA)),
                  expected, 1e-4);
      expect_near(answer_on(at::kCUDA, at::kBFloat16, inputs, on(at::kCUDA)),
                  expected, 0.03);
    }
  }
}

TEST(LshAttentionCuda, WithNearHeadsItIsTheCpusFunction) {
  for (const bool causal : {true, false}) {
    LshConfig config;
    config.chunk_length = 32;
    config.n_buckets = 16;
    config.causal = causal;
    const auto inputs = rounded(
        make_inputs(Queries::kRandom, Padding::kScattered, {2, 3, 333, 64}, 7));
    const auto buckets =
        lsh_attention_buckets(inputs.q.nan_to_num(), config, HashKey{1, 2, 3})
            .narrow(1, 0, 1);
    const auto on = [&](at::Device device) {
      return [&, device](const at::Tensor& qk, const at::Tensor& v) {
        return lsh_attention(qk, v, buckets.to(device), config,
                             inputs.mask.to(device), /*successor_heads=*/1,
                             /*near_window=*/20);
      };
    };
    const auto expected = answer_on(at::kCPU, at::kFloat, inputs, on(at::kCPU));
    expect_near(answer_on(at::kCUDA, at::kFloat, inputs, on(at::kCUDA)),
                expected, 1e-4);
    expect_near(answer_on(at::kCUDA, at::kBFloat16, inputs, on(at::kCUDA)),
                expected, 0.03);
  }
}

// As models have them, at the size at which they are trained.
TEST(LshAttentionCuda, HeadsWithoutBucketsSeeTheLastPositionsAlone) {
  constexpr int64_t kHashed = 4;
  constexpr int64_t kNear = 128;
  const auto rows = [](uint32_t seed) {
    return by_positions(
        normal({1, 8, 65536, 64}, seed).to(at::kBFloat16).cuda());
  };
  const auto d = rows(3);
  LshConfig config;
  config.rounds = 2;
  config.n_buckets = 1024;
  config.local_window = kNear;
  config.window = Window::kTrailing;
  const auto answer_of = [&](const auto& attend) -> std::vector<at::Tensor> {
    const auto qk = rows(1).requires_grad_();
    const auto v = rows(2).requires_grad_();
    const auto buckets =
        lsh_attention_buckets(qk.narrow(1, 0, kHashed), config, HashKey{1, 2});
    const auto output = attend(qk, v, buckets);
    output.backward(d);
    return {output.detach().cpu(), qk.grad().cpu(), v.grad().cpu()};
  };
  const auto together = answer_of([&](const auto& qk, const auto& v,
                                      const auto& buckets) {
    return lsh_attention(qk, v, buckets, config, /*mask=*/{}, kHashed, kNear);
  });
  const auto apart =
      answer_of([&](const auto& qk, const auto& v, const auto& buckets) {
        const auto far = [&](const at::Tensor& x) {
          return x.narrow(1, 0, kHashed);
        };
        const auto near = [&](const at::Tensor& x) {
          return x.narrow(1, kHashed, x.size(1) - kHashed);
        };
        return at::cat(
            {lsh_attention(far(qk), far(v), buckets, config, {}, kHashed),
             local_attention(near(qk), near(v), {kNear, Window::kTrailing})},
            1);
      });
  for (size_t i = 0; i < together.size(); ++i) {
    EXPECT_TRUE(same_bits(together[i], apart[i])) << i;
  }
}

TEST(NaturalAttentionCuda, IsTheCpusFunction) {
  const auto inputs =
      make_inputs(Queries::kRandom, Padding::kRight, {2, 2, 300, 32}, 4);
  const auto mask_on = [&](const at::Tensor& x) {
    return inputs.mask.to(x.device());
  };
  const std::vector<Operation> operations = {
      [&](const at::Tensor& qk, const at::Tensor& v) {
        return local_attention(qk, v, LocalConfig{}, mask_on(qk));
      },
      [&](const at::Tensor& qk, const at::Tensor& v) {
        return full_shared_qk_attention(qk, v, /*causal=*/true, mask_on(qk));
      },
      [&](const at::Tensor& qk, const at::Tensor& v) {
        return full_attention(qk, qk, v, /*causal=*/true, mask_on(qk));
      }};
  for (const auto& operation : operations) {
    expect_near(answer_on(at::kCUDA, at::kFloat, inputs, operation),
                answer_on(at::kCPU, at::kFloat, inputs, operation), 1e-4);
  }
}

AttentionAnswer full_attention_on(at::Device device, at::ScalarType type,
                                  const std::vector<at::Tensor>& numbers,
                                  bool causal, GradientSums gradient) {
  std::vector<at::Tensor> x;
  for (const auto& number : numbers) {
    x.push_back(number.to(device, type, /*non_blocking=*/false, /*copy=*/true)
                    .requires_grad_());
  }
  const auto output =
      full_attention(x[0], x[1], x[2], causal, /*mask=*/{}, gradient);
  output.backward(x[3].detach());
  const auto plain = [](const at::Tensor& y) { return y.cpu().to(at::kFloat); };
  return {plain(output),
          {},
          plain(x[0].grad()),
          plain(x[1].grad()),
          plain(x[2].grad())};
}

// Without a mask it is LibTorch's, by one of several operators.
TEST(NaturalAttentionCuda, FullAttentionIsTheCpusFunctionInBf16) {
  for (const bool causal : {true, false}) {
    for (const int64_t length : {1, 2, 33, 64, 192, 500}) {
      for (const int64_t d : {8, 64, 128}) {
        std::vector<at::Tensor> numbers;  // q, k, v, d_output
        for (uint64_t seed = 5; seed < 9; ++seed) {
          numbers.push_back(normal({2, 2, length, d}, seed)
                                .mul_(2)
                                .to(at::kBFloat16)
                                .to(at::kFloat));
        }
        const auto expected =
            full_attention_on(at::kCPU, at::kFloat, numbers, causal,
                              GradientSums::kDeterministic);
        for (const auto order :
             {GradientSums::kDeterministic, GradientSums::kNondeterministic}) {
          SCOPED_TRACE(testing::Message()
                       << "causal " << causal << ", length " << length << ", d "
                       << d << ", any order "
                       << (order == GradientSums::kNondeterministic));
          expect_near(full_attention_on(at::kCUDA, at::kBFloat16, numbers,
                                        causal, order),
                      expected, 0.03);
        }
      }
    }
  }
}

TEST(LshAttentionCuda, MoreRoundsInGroupsAreTheCpusFunction) {
  const auto inputs = rounded(make_inputs(
      Queries::kClustered, Padding::kScattered, {2, 4, 700, 64}, 9));
  LshConfig config;
  config.rounds = 7;
  config.chunk_length = 32;
  config.n_buckets = 16;
  config.local_window = 24;
  config.more_rounds = MoreRounds::kGroups;
  const auto buckets =
      lsh_attention_buckets(inputs.q, config, HashKey{}).narrow(1, 0, 3);
  config.rounds = 2;
  const auto on = [&](at::Device device, at::ScalarType type) {
    const auto here = [&](const at::Tensor& x) { return x.to(device, type); };
    return lsh_attention(here(inputs.q), here(inputs.v), buckets.to(device),
                         config, inputs.mask.to(device),
                         /*successor_heads=*/2, /*near_window=*/30)
        .cpu()
        .to(at::kDouble);
  };
  const auto expected = on(at::kCPU, at::kDouble);
  const double largest = expected.abs().max().item<double>();
  const at::Device gpu(at::kCUDA, 0);
  EXPECT_LE(max_error(on(gpu, at::kFloat), expected), 1e-5 * largest);
  EXPECT_LE(max_error(on(gpu, at::kBFloat16), expected), 0.02 * largest);
}

TEST(LshAttentionCuda, HashesAndAttendsInOneCall) {
  const auto qk = normal({1, 4, 2048, 64}, 1).to(at::kBFloat16).cuda();
  const auto v = normal({1, 4, 2048, 64}, 2).to(at::kBFloat16).cuda();
  const auto once = lsh_attention(qk, v, LshConfig{}, HashKey{});
  const auto again = lsh_attention(qk, v, LshConfig{}, HashKey{});
  EXPECT_TRUE(once.equal(again));
  EXPECT_TRUE(once.isfinite().all().item<bool>());
  EXPECT_TRUE(once.select(2, 0).equal(v.select(2, 0)));  // sees nobody else
}

// So many rows that heads are taken a group after the other (2 and 1): each is
// what it is alone.
TEST(LshAttentionCuda, HeadsOfSeveralGroupsEqualThemselvesAlone) {
  constexpr int64_t kHeads = 3;
  const auto random = [](uint64_t seed) {
    return normal({1, kHeads, 300'000, 16}, seed).to(at::kBFloat16).cuda();
  };
  LshConfig config;
  config.rounds = 2;
  const auto qk = random(1).requires_grad_();
  const auto v = random(2).requires_grad_();
  const auto d_output = random(3);
  const auto buckets = lsh_attention_buckets(qk, config, HashKey{});
  const auto output = lsh_attention(qk, v, buckets, config);
  output.backward(d_output);
  for (int64_t h = 0; h < kHeads; ++h) {
    const auto alone = [&](const at::Tensor& x) { return x.narrow(1, h, 1); };
    const auto own_qk = alone(qk).detach().clone().requires_grad_();
    const auto own_v = alone(v).detach().clone().requires_grad_();
    const auto own =
        lsh_attention(own_qk, own_v, alone(buckets).clone(), config);
    own.backward(alone(d_output).clone());
    EXPECT_TRUE(own.equal(alone(output))) << "head " << h;
    EXPECT_TRUE(own_qk.grad().equal(alone(qk.grad()))) << "head " << h;
    EXPECT_TRUE(own_v.grad().equal(alone(v.grad()))) << "head " << h;
  }
}

TEST(LshAttentionCuda, RefusesWhatItsKernelsCannotDo) {
  const auto of = [](int64_t d_head, at::ScalarType type) {
    return normal({1, 1, 10, d_head}, 1).cuda().to(type);
  };
  const auto run = [](const at::Tensor& qk, const at::Tensor& v) {
    lsh_attention(qk, v, LshConfig{}, HashKey{});
  };
  EXPECT_THROW(run(of(12, at::kFloat), of(12, at::kFloat)), Error);
  EXPECT_THROW(run(of(136, at::kFloat), of(136, at::kFloat)), Error);
  EXPECT_THROW(run(of(64, at::kDouble), of(64, at::kDouble)), Error);
  EXPECT_THROW(run(of(64, at::kHalf), of(64, at::kHalf)), Error);
  EXPECT_THROW(run(of(64, at::kFloat), of(64, at::kFloat).cpu()), Error);
  EXPECT_THROW(run(of(64, at::kBFloat16).cpu(), of(64, at::kBFloat16).cpu()),
               Error);
}

TEST(MemoryMeterCuda, CountsTensorsOfTheGpu) {
  const at::Device device(at::kCUDA, 0);
  MemoryMeter meter(device);
  const auto kept = normal({1 << 18}, 1).to(device);
  EXPECT_EQ(meter.in_use_bytes(), 1 << 20);
  { const auto released = kept.clone(); }
  EXPECT_EQ(meter.in_use_bytes(), 1 << 20);
  EXPECT_EQ(meter.peak_bytes(), 2 << 20);
}

TEST(DeviceCuda, IsChosenByName) {
  EXPECT_TRUE(choose_device("auto").is_cuda());
  EXPECT_TRUE(choose_device("cuda").is_cuda());
  EXPECT_TRUE(choose_device("cpu").is_cpu());
  EXPECT_THROW(choose_device("tpu"), Error);
  EXPECT_FALSE(cuda_device_name(choose_device("cuda")).empty());
}

}  // namespace
}  // namespace reformer
