#include "tests/support/odd_views.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "reformer/ops/full_attention.h"
#include "reformer/ops/local_attention.h"
#include "reformer/ops/lsh_attention.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

LshConfig lsh_config() {
  LshConfig config;
  config.rounds = 2;
  config.n_buckets = 4;
  config.chunk_length = 5;
  return config;
}

LocalConfig local_config() {
  LocalConfig config;
  config.chunk_length = 5;
  return config;
}

IntervalRounds rounds_for(const at::Tensor& q) {
  // Of other vectors: hashing is another operation.
  const auto hashed = normal(q.sizes(), 5).to(q.device());
  return lsh_rounds(lsh_attention_buckets(hashed, lsh_config(), HashKey{}),
                    lsh_config(), {});
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  const auto wide = b.to(at::kDouble);
  const auto error = (a.to(at::kDouble) - wide).abs().max().item<double>();
  return error / std::max(wide.abs().max().item<double>(), 1e-6);
}

struct Answer {
  at::Tensor output;
  std::vector<at::Tensor> gradients;  // of q, k, v [2, 3, 37, 16]
};

Answer answer_of(const VectorOperation& operation,
                 const std::vector<at::Tensor>& numbers, const OddView& view,
                 bool copied) {
  const auto vectors_of = [&](const at::Tensor& x) {
    const auto viewed = view.of(x);
    return copied ? viewed.clone(at::MemoryFormat::Contiguous) : viewed;
  };
  // Leaves themselves: the gradient of the numbers below them would add up what
  // overlaps, in the numbers' precision and, on a GPU, in any order.
  std::vector<at::Tensor> vectors;
  for (const auto& x : numbers) {
    vectors.push_back(vectors_of(x).detach().set_requires_grad(true));
  }
  const auto output = operation.run(vectors[0], vectors[1], vectors[2]);
  const auto d_output = vectors_of(numbers[0]);
  return {output, torch::autograd::grad({output}, vectors, {d_output}, {},
                                        /*create_graph=*/false,
                                        /*allow_unused=*/true)};
}

}  // namespace

at::Tensor OddView::of(const at::Tensor& numbers) const {
  return numbers.as_strided({2, 3, 37, 16}, strides);
}

const std::vector<OddView>& odd_views() {
  static const std::vector<OddView> all{
      {"rows one number apart", {160, 53, 1, 1}},
      {"heads one number apart", {592, 1, 16, 1}},
      {"batches one number apart", {1, 592, 16, 1}},
      {"everything one number apart", {1, 1, 1, 1}},
      {"rows that overlap by half", {888, 296, 8, 1}},
      {"one row for all positions", {48, 16, 0, 1}},
      {"one head for all", {592, 0, 16, 1}},
      {"one number a row", {111, 37, 1, 0}},
      {"columns before rows", {1776, 592, 1, 37}},
      {"every other number", {1998, 666, 18, 2}},
  };
  return all;
}

std::vector<VectorOperation> vector_operations() {
  using Tensor = at::Tensor;
  return {
      {"interval_attention, shared keys",
       [](const Tensor& q, const Tensor& /*k*/, const Tensor& v) {
         return interval_attention(q, {}, v, rounds_for(q)).output;
       }},
      {"interval_attention, separate keys",
       [](const Tensor& q, const Tensor& k, const Tensor& v) {
         return interval_attention(q, k, v, rounds_for(q)).output;
       }},
      {"lsh_attention",
       [](const Tensor& q, const Tensor& /*k*/, const Tensor& v) {
         return lsh_attention(q, v, lsh_config(), HashKey{});
       }},
      {"local_attention",
       [](const Tensor& q, const Tensor& /*k*/, const Tensor& v) {
         return local_attention(q, v, local_config());
       }},
      {"full_attention",
       [](const Tensor& q, const Tensor& k, const Tensor& v) {
         return full_attention(q, k, v, /*causal=*/true);
       }},
      {"full_shared_qk_attention",
       [](const Tensor& q, const Tensor& /*k*/, const Tensor& v) {
         return full_shared_qk_attention(q, v, /*causal=*/true);
       }},
  };
}

void expect_views_are_copies(const at::TensorOptions& options, double most) {
  std::vector<at::Tensor> numbers;
  for (const uint64_t seed : {1, 2, 3}) {
    numbers.push_back(normal({kOddViewNumbers}, seed).to(options));
  }
  for (const auto& operation : vector_operations()) {
    for (const auto& view : odd_views()) {
      SCOPED_TRACE(operation.name + ", " + view.name);
      const auto viewed = answer_of(operation, numbers, view, /*copied=*/false);
      const auto copied = answer_of(operation, numbers, view, /*copied=*/true);
      EXPECT_LE(distance(viewed.output, copied.output), most);
      for (size_t i = 0; i < numbers.size(); ++i) {
        ASSERT_EQ(viewed.gradients[i].defined(), copied.gradients[i].defined());
        if (!copied.gradients[i].defined()) continue;
        EXPECT_LE(distance(viewed.gradients[i], copied.gradients[i]), most)
            << "gradient " << i;
      }
    }
  }
}

}  // namespace reformer
