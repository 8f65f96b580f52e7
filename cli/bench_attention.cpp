#include "cli/bench_attention.h"

#include <ATen/SDPBackend.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <memory>

#include "cli/bench_attention_report.h"
#include "cli/bench_data.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/timing.h"
#include "reformer/ops/interval_statistics.h"
#include "reformer/ops/lsh_attention.h"
#include "reformer/ops/memory_meter.h"

namespace reformer::cli {
namespace {

struct AttentionOptions : BenchOptions {
  int64_t exact_up_to = 16384;
  AttentionOptions() : BenchOptions({1024, 4096, 16384}) {}
};

using Tensors = std::vector<at::Tensor>;
using Forward = std::function<at::Tensor()>;

int64_t bytes_of(const Tensors& tensors) {
  int64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += int64_t(tensor.nbytes());
  return bytes;
}

PassTime median_pass(int64_t repeats, const Forward& forward,
                     const Tensors& inputs, const at::Tensor& d_output) {
  std::vector<double> forward_s;
  std::vector<double> backward_s;
  for (Repetitions repetitions(repeats); repetitions.more();) {
    const Stopwatch forward_watch;
    const auto output = forward();
    forward_s.push_back(forward_watch.seconds());
    const Stopwatch backward_watch;
    const auto gradients = torch::autograd::grad({output}, inputs, {d_output});
    backward_s.push_back(backward_watch.seconds());
  }
  return {median(forward_s), median(backward_s)};
}

// Beyond inputs, output and gradients. The forward pass counts by itself,
// because there are no gradients yet at its peak.
int64_t extra_bytes_of_pass(const Forward& forward, const Tensors& inputs,
                            const at::Tensor& d_output) {
  MemoryMeter meter;
  meter.reset();
  const auto output = forward();
  const int64_t in_forward = meter.peak_bytes() - bytes_of({output});
  const auto gradients = torch::autograd::grad({output}, inputs, {d_output});
  const int64_t in_backward =
      meter.peak_bytes() - bytes_of({output}) - bytes_of(gradients);
  return std::max(in_forward, in_backward);
}

// Which one LibTorch chooses for such inputs.
std::string exact_kernel(const at::Tensor& q) {
  const auto choice = static_cast<at::SDPBackend>(at::_fused_sdp_choice(
      q, q, q, /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true));
  return choice == at::SDPBackend::flash_attention
             ? "flash kernel (_scaled_dot_product_flash_attention_for_cpu)"
             : "math kernel (holds [length, length])";
}

PassTime measure_exact(const BenchOptions& options, const BenchData& data) {
  const auto q = data.qk.detach().requires_grad_();
  const auto k = data.d_output.detach().requires_grad_();  // normal numbers too
  const auto v = data.v.detach().requires_grad_();
  const auto forward = [&] {
    return at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{},
                                            /*dropout_p=*/0.0,
                                            /*is_causal=*/true);
  };
  torch::autograd::grad({forward()}, {q, k, v}, {data.d_output});  // warm up
  return median_pass(options.repeats, forward, {q, k, v}, data.d_output);
}

AttentionMeasurement measure_lsh(const BenchOptions& options,
                                 const BenchData& data, int64_t rounds) {
  AttentionMeasurement measured;
  measured.length = data.qk.size(2);
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

  const auto forward = [&] {
    ++key.step;  // a training step never hashes as the one before
    return lsh_attention(qk, v, config, key);
  };
  // This also warms up, for the times that follow.
  measured.extra_bytes = extra_bytes_of_pass(forward, {qk, v}, data.d_output);
  measured.lsh = median_pass(options.repeats, forward, {qk, v}, data.d_output);
  return measured;
}

std::string head(const AttentionOptions& options) {
  const auto sample = bench_data(options, /*length=*/1).qk.requires_grad_();
  return "LSH and exact attention: " + options.describe() + "\n" +
         describe_machine() + "\nexact: LibTorch's SDPA, " +
         exact_kernel(sample) + "\n\n" + attention_table_head();
}

void bench_attention(const AttentionOptions& options) {
  options.prepare();
  Report report(options.json);
  report.text(head(options));
  for (const int64_t length : options.lengths) {
    const std::string what = "length " + std::to_string(length) + ": ";
    const BenchData data = bench_data(options, length);
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
