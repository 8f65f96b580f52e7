#include "cli/commands/bench.h"

#include "cli/bench/attention.h"
#include "cli/bench/generate.h"
#include "cli/bench/peak.h"
#include "cli/bench/train.h"
#include "cli/bench/translate.h"

namespace reformer::cli {

void add_bench(CLI::App& app, Action& action) {
  CLI::App& bench = *app.add_subcommand("bench", "Measure speed and memory");
  add_bench_attention(bench, action);
  add_bench_generate(bench, action);
  add_bench_peak(bench, action);
  add_bench_train(bench, action);
  add_bench_translate(bench, action);
}

}  // namespace reformer::cli
