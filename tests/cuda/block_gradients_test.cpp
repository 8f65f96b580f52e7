// What blocks of every kind compute on a GPU, forward and backward.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include "tests/cuda/learner_fixture.h"
#include "tests/model/autograd_step.h"

namespace reformer {
namespace {

class CudaBlockGradients : public CudaLearner {};

std::vector<at::Tensor> gradients_of(Learner& learner, const Batch& batch) {
  learner.gradients({batch}, 1).read();
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : learner.model().parameters()) {
    gradients.push_back(parameter.gradient().to(at::kDouble));
  }
  return gradients;
}

std::vector<at::Tensor> autograds(const LanguageModel& model,
                                  const Batch& batch, const Pass& pass) {
  auto gradients = autograd_gradients(model, batch.tokens, pass,
                                      1.0 / double(batch.tokens.numel()));
  for (auto& gradient : gradients) gradient = gradient.to(at::kDouble);
  return gradients;
}

TEST_F(CudaBlockGradients, GradientsAreAutogradsForEveryBlock) {
  for (const char* block : {"reversible", "stored", "residual"}) {
    auto config = small_config();
    config.model.block = block;
    config.train.clip = 0;
    Learner learner(config, {gpu_, at::kFloat});
    const auto batch = markov_text(config, 3);
    const auto expected =
        autograds(learner.language_model(), batch, learner.pass(1));
    const auto found = gradients_of(learner, batch);
    for (size_t i = 0; i < expected.size(); ++i) {
      const double error = (found[i] - expected[i]).abs().max().item<double>();
      const double largest = expected[i].abs().max().item<double>();
      EXPECT_LE(error, 1e-4 * largest + 1e-7)
          << block << ", " << learner.model().parameters()[i].name;
    }
  }
}

// Where elements are rounded, other kernels run than in float32. The tolerance
// of fast code: twice the error of autograd in the same precision.
TEST_F(CudaBlockGradients, RoundedGradientsAreAsExactAsAutogradsForEveryBlock) {
  for (const char* block : {"reversible", "stored", "residual"}) {
    for (const double dropout : {0.0, 0.1}) {
      auto config = small_config("local");  // no buckets that rounding changes
      config.model.block = block;
      config.model.dropout = dropout;
      config.train.clip = 0;
      const auto batch = markov_text(config, 3);
      Learner learner(config, {gpu_, at::kBFloat16});
      const LanguageModel wide(config, {gpu_, at::kFloat});
      const auto exact = autograds(wide, batch, learner.pass(1));
      const auto plain =
          autograds(learner.language_model(), batch, learner.pass(1));
      const auto found = gradients_of(learner, batch);
      for (size_t i = 0; i < exact.size(); ++i) {
        const auto error = [&](const at::Tensor& x) {
          return ((x - exact[i]).norm() / exact[i].norm()).item<double>();
        };
        EXPECT_LE(error(found[i]), 2 * error(plain[i]) + 0x1p-8)
            << block << ", " << wide.parameters()[i].name << ", dropout "
            << dropout;
      }
    }
  }
}

// Where both fit, one may be chosen for its memory and the other for its speed.
TEST_F(CudaBlockGradients, StoredActivationsAreTheReversibleFunctionToTheBit) {
  for (const char* attention : {"lsh", "local", "full_shared_qk", "full"}) {
    for (const double dropout : {0.0, 0.1}) {
      auto config = small_config(attention);
      config.model.dropout = dropout;
      const auto batch = markov_text(config, 3);
      const auto output = [&](const char* block) {
        config.model.block = block;
        Learner learner(config, {gpu_, at::kBFloat16});
        auto& model = learner.language_model();
        const auto tokens = batch.tokens.to(gpu_);
        const at::NoGradGuard no_grad;
        const auto x = model.embed(tokens, 0, tokens.size(1));
        return model.stack().forward({x.clone(), x.clone()}, learner.pass(1));
      };
      const auto rebuilt = output("reversible");
      const auto stored = output("stored");
      EXPECT_TRUE(at::equal(rebuilt.x1, stored.x1)) << attention;
      EXPECT_TRUE(at::equal(rebuilt.x2, stored.x2)) << attention;
    }
  }
}

}  // namespace
}  // namespace reformer
