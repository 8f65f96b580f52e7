#include "cli/bench/attention.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <memory>

#include "cli/bench/attention_report.h"
#include "cli/bench/data.h"
#include "cli/bench/timing.h"
#include "cli/process/machine.h"
#include "cli/screen/output.h"
#include "reformer/device/device.h"
#include "reformer/device/memory_meter.h"
#include "reformer/ops/full_attention.h"
#include "reformer/ops/interval_statistics.h"
#include "reformer/ops/lsh_attention.h"

namespace reformer::cli {
namespace {

struct AttentionOptions : BenchOptions {
  int64_t exact_up_to = 16384;
  AttentionOptions() : BenchOptions({1024, 4096, 16384}) {}
};

using Tensors = std::vector<at::Tensor>;
using Forward = std::function<at::Tensor(const Tensors&)>;

int64_t bytes_of(const Tensors& tensors) {
  int64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += int64_t(tensor.nbytes());
  return bytes;
}

// Copies of the inputs that together are larger than a GPU's cache, each used
// in its turn.
std::vector<Tensors> rotated(const Tensors& inputs) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  constexpr int64_t kMostCopies = 16;
  std::vector<Tensors> sets = {inputs};
  if (!inputs[0].is_cuda()) return sets;
  const int64_t wanted = 1 + kBytes / bytes_of(inputs);
  while (static_cast<int64_t>(sets.size()) < std::min(wanted, kMostCopies)) {
    sets.emplace_back();
    for (const auto& input : inputs) {
      sets.back().push_back(
          input.detach().clone().set_requires_grad(input.requires_grad()));
    }
  }
  return sets;
}

// `inputs` and, last, the output's gradient. A GPU is given several passes at
// once, so that it does not wait for the host more than it must.
PassTime median_pass(int64_t repeats, const Forward& forward, Tensors inputs,
                     const at::Tensor& d_output) {
  const auto device = d_output.device();
  const int64_t at_once = device.is_cuda() ? 8 : 1;
  inputs.push_back(d_output);
  const auto sets = rotated(inputs);
  std::vector<double> forward_s;
  std::vector<double> backward_s;
  size_t turn = 0;
  for (Repetitions repetitions(repeats); repetitions.more();) {
    std::vector<Marks> passes;
    for (int64_t i = 0; i < at_once; ++i) {
      Tensors own = sets[turn++ % sets.size()];
      const auto d_own = own.back();
      own.pop_back();
      passes.emplace_back(device).mark();
      const auto output = forward(own);
      passes.back().mark();
      const auto gradients = torch::autograd::grad({output}, own, {d_own});
      passes.back().mark();
    }
    for (auto& pass : passes) {
      const auto seconds = pass.seconds();
      forward_s.push_back(seconds[0]);
      backward_s.push_back(seconds[1]);
    }
  }
  return {median(forward_s), median(backward_s)};
}

// Beyond inputs, output and gradients. The forward pass counts by itself,
// because there are no gradients yet at its peak.
int64_t extra_bytes_of_pass(const Forward& forward, const Tensors& inputs,
                            const at::Tensor& d_output) {
  MemoryMeter meter(d_output.device());
  const auto output = forward(inputs);
  const int64_t in_forward = meter.peak_bytes() - bytes_of({output});
  const auto gradients = torch::autograd::grad({output}, inputs, {d_output});
  const int64_t in_backward =
      meter.peak_bytes() - bytes_of({output}) - bytes_of(gradients);
  return std::max(in_forward, in_backward);
}

PassTime measure_exact(const BenchOptions& options, const BenchData& data) {
  const auto q = data.qk.detach().requires_grad_();
  const auto k = data.d_output.detach().requires_grad_();  // normal numbers too
  const auto v = data.v.detach().requires_grad_();
  const auto forward = [&](const Tensors& inputs) {
    return full_attention(inputs[0], inputs[1], inputs[2], /*causal=*/true,
                          /*mask=*/{}, GradientSums::kNondeterministic);
  };
  torch::autograd::grad({forward({q, k, v})}, {q, k, v},
                        {data.d_output});  // warm up
  return median_pass(options.repeats, forward, {q, k, v}, data.d_output);
}

AttentionMeasurement measure_lsh(const BenchOptions& options,
                                 const BenchData& data, int64_t rounds) {
  AttentionMeasurement measured;
  measured.length = data.qk.size(2);
  measured.device = data.qk.device();
  measured.config = options.config(measured.length, rounds);
  const auto& config = measured.config;

  const auto qk = data.qk.detach().requires_grad_();
  const auto v = data.v.detach().requires_grad_();
  HashKey key;
  key.seed = static_cast<uint64_t>(options.seed);
  const auto buckets = lsh_attention_buckets(data.qk, config, key);
  const auto statistics = lsh_statistics(buckets, config);
  measured.keys_per_query = statistics.keys_per_query;
  measured.overflow = statistics.overflow;

  const auto forward = [&](const Tensors& inputs) {
    ++key.step;  // a training step never hashes as the one before
    return lsh_attention(inputs[0], inputs[1], config, key);
  };
  // This also warms up, for the times that follow.
  measured.extra_bytes = extra_bytes_of_pass(forward, {qk, v}, data.d_output);
  measured.lsh = median_pass(options.repeats, forward, {qk, v}, data.d_output);
  return measured;
}

std::string attention_head(const AttentionOptions& options, at::Device device,
                           const std::string& exact) {
  return "LSH and exact attention: " + options.describe(device) + "\n" +
         describe_machine(device) + "\nexact: LibTorch's SDPA, " + exact +
         "\noverflow: pairs of a bucket that lie outside the window\n\n" +
         attention_table_head();
}

void bench_attention(const AttentionOptions& options) {
  const at::Device device = options.prepare();
  const auto sample = bench_data(options, /*length=*/64, device).qk;
  Report report(options.json);
  report.text(
      attention_head(options, device,
                     full_attention_kernel(sample, sample, /*causal=*/true,
                                           GradientSums::kNondeterministic)));
  for (const int64_t length : options.lengths) {
    const std::string what = "length " + std::to_string(length) + ": ";
    const BenchData data = bench_data(options, length, device);
    std::optional<PassTime> exact;
    if (length <= options.exact_up_to) {
      report.progress(what + "exact attention");
      exact = measure_exact(options, data);
    }
    for (const int64_t rounds : options.rounds) {
      report.progress(what + "LSH attention, rounds " + std::to_string(rounds));
      auto measured = measure_lsh(options, data, rounds);
      measured.exact = exact;
      report.text(attention_table_row(options, measured));
      report.json(attention_json(options, measured));
    }
  }
}

}  // namespace

void add_bench_attention(CLI::App& bench, Action& action) {
  auto& app = *bench.add_subcommand(
      "attention", "LSH attention's time and memory against exact attention");
  const auto options = std::make_shared<AttentionOptions>();
  options->add_to(app);
  app.add_option("--exact-up-to", options->exact_up_to,
                 "measure exact attention up to this length; 0: never")
      ->check(whole_number(0, kMaxLength))
      ->take_last()
      ->type_name("N")
      ->capture_default_str();
  app.callback([options, &action] {
    action = [options] { bench_attention(*options); };
  });
}

}  // namespace reformer::cli
