#include "cli/bench.h"

#include "cli/bench_attention.h"
#include "cli/bench_generate.h"
#include "cli/bench_peak.h"
#include "cli/bench_train.h"

namespace reformer::cli {

void add_bench(CLI::App& app, Action& action) {
  CLI::App& bench = *app.add_subcommand("bench", "Measure speed and memory");
  add_bench_attention(bench, action);
  add_bench_generate(bench, action);
  add_bench_peak(bench, action);
  add_bench_train(bench, action);
}

}  // namespace reformer::cli
