#include "tests/model/small_model.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reformer/base/parallel.h"
#include "reformer/base/philox.h"

namespace reformer {
namespace {

PhiloxCounter draw(uint64_t seed, int64_t i) {
  return philox({static_cast<uint32_t>(seed), 0x7e57},
                {static_cast<uint32_t>(i), 0, 0, 0});
}

void use_threads(int count) {
  set_threads(count);
  at::set_num_threads(count);
}

}  // namespace

Config small_config() {
  Config config;
  config.task.name = "duplication";
  config.task.alphabet = 18;
  config.model.layers = 4;
  config.model.d_model = 24;
  config.model.d_ff = 40;
  config.model.heads = 2;
  config.model.d_head = 8;
  config.model.vocabulary = 19;
  config.model.attention = "lsh,local,full,full_shared_qk";
  config.model.dropout = 0.1;
  config.model.feed_forward_chunk = 23;
  config.model.loss_chunk = 17;
  config.lsh.rounds = 3;
  config.lsh.chunk_length = 6;
  config.lsh.n_buckets = 8;
  config.lsh.local_window = 5;
  config.train.batch = 2;
  config.train.length = 66;
  config.train.seed = 3;
  return config;
}

Config small_config_of(const std::string& attention) {
  Config config = small_config();
  config.model.attention = attention;
  if (config.model.attention.contains(AttentionKind::kLshHuggingface)) {
    config.model.bucket_factors = {2, 4};
    config.lsh.local_window = 0;
  }
  return config;
}

Config medium_config() {
  Config config = small_config_of("lsh");
  config.model.layers = 2;
  config.model.d_model = 64;
  config.model.d_ff = 256;
  config.model.d_head = 32;
  config.model.feed_forward_chunk = 128;
  config.model.loss_chunk = 128;
  config.lsh.chunk_length = 32;
  config.lsh.n_buckets = 0;
  config.train.batch = 2;
  config.train.length = 1024;
  return config;
}

at::Tensor random_tokens(const Config& config, uint64_t seed) {
  auto tokens = at::empty({config.train.batch, config.train.length}, at::kLong);
  auto* data = tokens.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    data[i] = draw(seed, i)[0] % config.model.vocabulary;
  }
  return tokens;
}

at::Tensor all_of(const at::Tensor& tokens) {
  return at::ones_like(tokens, at::kBool);
}

at::Tensor normal_numbers(at::IntArrayRef sizes, uint64_t seed,
                          at::ScalarType type) {
  auto numbers = at::empty(sizes, at::kDouble);
  auto* data = numbers.mutable_data_ptr<double>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    const auto bits = draw(seed, i);
    data[i] = std::sqrt(-2 * std::log((bits[0] + 0.5) * 0x1p-32)) *
              std::cos(2 * M_PI * bits[1] * 0x1p-32);
  }
  return numbers.to(type);
}

void shake(SequenceModel& model, double size) {
  const at::NoGradGuard no_grad;
  uint64_t seed = 1000;
  for (auto& parameter : model.parameters()) {
    const auto& value = parameter.value;
    value.add_(normal_numbers(value.sizes(), seed++, value.scalar_type()),
               size);
  }
}

void copy_parameters(const SequenceModel& from, SequenceModel& to) {
  const at::NoGradGuard no_grad;
  ASSERT_EQ(from.parameters().size(), to.parameters().size());
  for (size_t i = 0; i < to.parameters().size(); ++i) {
    to.parameters()[i].value.copy_(from.parameters()[i].value);
  }
}

Pass training_pass() { return {7, 5, /*training=*/true, 0}; }
Pass evaluation_pass() { return {7, 0, /*training=*/false, 0}; }

Step step_of(LanguageModel& model, const at::Tensor& tokens,
             const at::Tensor& loss_mask) {
  model.zero_gradients();
  const double scale = 1.0 / double(tokens.numel());
  Step step{model.train(tokens, loss_mask, training_pass(), scale), {}};
  for (const auto& parameter : model.parameters()) {
    step.gradients.push_back({parameter.name, parameter.gradient()});
  }
  return step;
}

Step step_of(LanguageModel& model, const at::Tensor& tokens) {
  return step_of(model, tokens, all_of(tokens));
}

OneThread::OneThread() : before_(threads()) { use_threads(1); }
OneThread::~OneThread() { use_threads(before_); }

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!a.defined() || !b.defined() || a.sizes() != b.sizes()) return kInfinity;
  const auto wide_a = a.detach().to(at::kDouble);
  const auto wide_b = b.detach().to(at::kDouble);
  const double error = (wide_a - wide_b).abs().max().item<double>();
  const double largest = wide_b.abs().max().item<double>();
  if (std::isnan(error)) return kInfinity;
  return error == 0 ? 0 : error / largest;
}

void expect_same_step(const Step& step, const Step& reference, double most) {
  EXPECT_NEAR(step.sums.loss, reference.sums.loss, most * reference.sums.loss);
  EXPECT_EQ(step.sums.count, reference.sums.count);
  EXPECT_EQ(step.sums.correct, reference.sums.correct);
  ASSERT_EQ(step.gradients.size(), reference.gradients.size());
  for (size_t i = 0; i < step.gradients.size(); ++i) {
    const auto& [name, gradient] = step.gradients[i];
    EXPECT_LE(relative_error(gradient, reference.gradients[i].value), most)
        << name;
  }
}

std::vector<at::Tensor> buckets_of(const LanguageModel& model,
                                   const at::Tensor& tokens, const Pass& pass) {
  std::vector<at::Tensor> buckets;
  model.logits(tokens, pass, &buckets);
  std::erase_if(buckets, [](const auto& x) { return !x.defined(); });
  return buckets;
}

bool same_buckets(const std::vector<at::Tensor>& a,
                  const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i].view(at::kShort), b[i].view(at::kShort))) return false;
  }
  return true;
}

}  // namespace reformer
