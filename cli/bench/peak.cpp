#include "cli/bench/peak.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/bench/data.h"
#include "cli/bench/timing.h"
#include "cli/process/machine.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "reformer/ops/interval_statistics.h"
#include "reformer/ops/lsh_attention.h"

namespace reformer::cli {
namespace {

// A score is 2 d operations, and so is its share of the output; the backward
// pass has five such matmuls (scores, d_v, d_p, d_q, d_k).
constexpr double kForwardProducts = 2;
constexpr double kBackwardProducts = 5;

struct KernelSpeed {
  double seconds = 0;
  double gflops = 0;  // GFLOP/s, on the scores computed
};

struct PeakMeasurement {
  int64_t length = 0;
  LshConfig config;
  double matmul_gflops = 0;  // GFLOP/s
  double computed_per_query = 0;
  KernelSpeed forward;
  KernelSpeed backward;
};

// The best of a few sizes: none is the best on every machine.
double matmul_gflops(int64_t repeats) {
  const auto random = at::detail::createCPUGenerator();
  double best = 0;
  for (const int64_t n : {512, 1024, 2048}) {
    const auto a = at::randn({n, n}, random);
    const auto b = at::randn({n, n}, random);
    auto product = at::empty({n, n});
    const auto multiply = [&] { at::mm_out(product, a, b); };
    multiply();
    const double seconds = median_seconds(repeats, multiply);
    best = std::max(best, 2e-9 * double(n) * double(n) * double(n) / seconds);
  }
  return best;
}

KernelSpeed measure_kernel(const BenchOptions& options, double matmuls,
                           double scores, const std::function<void()>& kernel) {
  kernel();  // warm up
  KernelSpeed speed;
  speed.seconds = median_seconds(options.repeats, kernel);
  speed.gflops =
      1e-9 * matmuls * 2 * double(options.d_head) * scores / speed.seconds;
  return speed;
}

PeakMeasurement measure(const BenchOptions& options, int64_t length,
                        int64_t n_rounds) {
  PeakMeasurement measured;
  measured.length = length;
  measured.config = options.config(length, n_rounds);
  const auto& config = measured.config;
  const BenchData data = bench_data(options, length);
  HashKey key;
  key.seed = static_cast<uint64_t>(options.seed);
  const auto buckets = lsh_attention_buckets(data.qk, config, key);
  const auto rounds = lsh_rounds(buckets, config);
  measured.computed_per_query =
      lsh_statistics(buckets, config).computed_per_query;
  const double scores = measured.computed_per_query *
                        double(options.batch * options.heads * length);

  const at::Tensor shared_k;
  const at::Tensor no_mask;
  AttentionResult result;
  measured.forward = measure_kernel(options, kForwardProducts, scores, [&] {
    result =
        interval_attention_forward(data.qk, shared_k, data.v, rounds, no_mask);
  });
  measured.backward = measure_kernel(options, kBackwardProducts, scores, [&] {
    interval_attention_backward(data.qk, shared_k, data.v, rounds, no_mask,
                                result, data.d_output);
  });
  return measured;
}

std::string peak_json(const BenchOptions& options, const PeakMeasurement& m) {
  nlohmann::ordered_json json;
  json["bench"] = "peak";
  json["device"] = "cpu";
  json["dtype"] = "float32";
  json["batch"] = options.batch;
  json["heads"] = options.heads;
  json["d_head"] = options.d_head;
  json["length"] = m.length;
  json["rounds"] = m.config.rounds;
  json["chunk_length"] = options.chunk_length;
  json["n_buckets"] = m.config.n_buckets;
  json["window"] = options.window.name();
  json["local_window"] = options.local_window;
  json["data"] = options.data.name();
  json["matmul_gflops"] = m.matmul_gflops;
  json["computed_per_query"] = m.computed_per_query;
  json["forward_s"] = m.forward.seconds;
  json["forward_gflops"] = m.forward.gflops;
  json["forward_share"] = m.forward.gflops / m.matmul_gflops;
  json["backward_s"] = m.backward.seconds;
  json["backward_gflops"] = m.backward.gflops;
  json["backward_share"] = m.backward.gflops / m.matmul_gflops;
  return json.dump() + "\n";
}

const std::vector<Column> kPeakColumns = {
    {7, "", "length"}, {7, "", "rounds"},          {9, "scores", "a query"},
    {9, "", "ms"},     {9, "forward", "GFLOP/s"},  {7, "", "share"},
    {9, "", "ms"},     {9, "backward", "GFLOP/s"}, {7, "", "share"}};

std::string peak_table_row(const PeakMeasurement& m) {
  std::vector<std::string> cells = {std::to_string(m.length),
                                    std::to_string(m.config.rounds),
                                    fixed(m.computed_per_query, 1)};
  for (const auto& kernel : {m.forward, m.backward}) {
    cells.push_back(milliseconds(kernel.seconds));
    cells.push_back(fixed(kernel.gflops, 1));
    cells.push_back(fixed(100 * kernel.gflops / m.matmul_gflops, 0, "%"));
  }
  return table_row(kPeakColumns, cells);
}

std::string peak_head(const BenchOptions& options, double peak) {
  return "The attention kernel alone: " + options.describe(at::kCPU) + "\n" +
         describe_machine() + "\npeak: matmul (at::mm, float32), " +
         fixed(peak, 1, " GFLOP/s") + "\n\n" + table_head(kPeakColumns);
}

void bench_peak(const BenchOptions& options) {
  options.prepare_cpu();
  Report report(options.json);
  report.progress("matmul");
  const double peak = matmul_gflops(options.repeats);
  report.text(peak_head(options, peak));
  for (const int64_t length : options.lengths) {
    for (const int64_t rounds : options.rounds) {
      report.progress("length " + std::to_string(length) +
                      ": attention kernel, rounds " + std::to_string(rounds));
      auto measured = measure(options, length, rounds);
      measured.matmul_gflops = peak;
      report.text(peak_table_row(measured));
      report.json(peak_json(options, measured));
    }
  }
}

}  // namespace

void add_bench_peak(CLI::App& bench, Action& action) {
  auto& app = *bench.add_subcommand(
      "peak", "the attention kernel's share of the matmul peak");
  const auto options =
      std::make_shared<BenchOptions>(std::vector<int64_t>{16384});
  options->add_to(app);
  app.callback(
      [options, &action] { action = [options] { bench_peak(*options); }; });
}

}  // namespace reformer::cli
