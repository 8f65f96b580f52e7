// huggingface_logits MODEL IN OUT: what an imported model computes, for
// python/tests/test_huggingface.py.
//
// IN, safetensors: tokens [batch, length] int64; buckets.I [batch, heads,
// rounds, length] int32, of layer I, to be used in place of its own hashes;
// count [1] int64: tokens to generate greedily after each row. OUT: logits
// [batch, length, vocabulary]; generated [batch, count].
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <cstdio>
#include <exception>
#include <map>

#include "reformer/base/errors.h"
#include "reformer/generate/decoder.h"
#include "reformer/io/checkpoint.h"
#include "reformer/io/safetensors.h"
#include "reformer/model/language_model.h"
#include "reformer/train/evaluation.h"

namespace reformer {
namespace {

at::Tensor generated(const LanguageModel& model, const at::Tensor& tokens,
                     int64_t count) {
  Decoder decoder(model, tokens.size(0));
  const std::vector<int64_t> lengths(tokens.size(0), tokens.size(1));
  auto logits = decoder.prefill(tokens, lengths);
  std::vector<at::Tensor> drawn;
  for (int64_t i = 0; i < count; ++i) {
    drawn.push_back(logits.argmax(1));
    if (i + 1 < count) logits = decoder.step(drawn.back());
  }
  return at::stack(drawn, 1);
}

// Of every position, with buckets that somebody else hashed.
at::Tensor logits_of(const LanguageModel& model, const at::Tensor& tokens,
                     std::vector<at::Tensor> buckets) {
  const at::NoGradGuard no_grad;
  Pass pass;
  pass.seed = static_cast<uint64_t>(model.config().train.seed);
  const auto& stack = model.stack();
  const auto start =
      at::full({tokens.size(0), 1}, model.start_token(), tokens.options());
  const auto inputs =
      at::cat({start, tokens.narrow(1, 0, tokens.size(1) - 1)}, 1);
  auto y = stack.begin(model.embed(inputs, 0, inputs.size(1)));
  stack.for_each_branch(
      stack.count(),
      [&](const BranchPlace& at, const AttentionLayer& layer) {
        layer.add_to(y[at.to], y[at.from], pass,
                     buckets[static_cast<size_t>(at.block)], 1);
      },
      [&](const BranchPlace& at, const FeedForward& layer) {
        layer.add_to(y[at.to], y[at.from], pass, 1);
      });
  return model.head().logits(y);
}

void run(const char* folder, const char* in, const char* out) {
  const auto checkpoint = load_best_model(folder);
  LanguageModel model(checkpoint.config);
  load_parameters(model, checkpoint.parameters);
  std::map<std::string, at::Tensor> given;
  for (const auto& [name, value] : read_safetensors(in).tensors) {
    given[name] = value;
  }
  require(given.contains("tokens"), in, ": tokens are missing");
  const auto& tokens = given["tokens"];
  std::vector<at::Tensor> buckets(
      static_cast<size_t>(checkpoint.config.model.layers));
  for (size_t i = 0; i < buckets.size(); ++i) {
    const auto found = given.find("buckets." + std::to_string(i));
    if (found != given.end()) buckets[i] = found->second.to(at::kUInt16);
  }
  std::vector<NamedTensor> results = {
      {"logits", logits_of(model, tokens, buckets)}};
  if (given.contains("count")) {
    results.push_back({"generated", generated(model, tokens,
                                              given["count"].item<int64_t>())});
  }
  write_safetensors(out, results, {});
}

}  // namespace
}  // namespace reformer

int main(int count, char** arguments) {
  if (count != 4) {
    std::fputs("usage: huggingface_logits MODEL IN OUT\n", stderr);
    return 2;
  }
  try {
    reformer::run(arguments[1], arguments[2], arguments[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "huggingface_logits: %s\n", error.what());
    return 1;
  }
  return 0;
}
