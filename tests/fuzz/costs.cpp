// cli/reproduce/step_costs: the costs.jsonl of a figure.
#include <atomic>

#include "cli/reproduce/experiment_settings.h"
#include "cli/reproduce/step_costs.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

std::vector<std::string> seeds() {
  cli::StepCost cost;
  cost.row = "cost";
  cost.series = "full";
  cost.batch = cost.length = 8;
  cost.machine = "a machine";
  return {cli::json_lines_of("", {cost, cost}),
          cli::json_lines_of("f", {cost})};
}

void execute(const std::string& input) {
  put_file(scratch_folder("costs") + "/" + cli::kCostsFile, input);
  const std::atomic<bool> stop = false;
  const auto costs = cli::measured_costs(scratch_folder("costs"), /*points=*/{},
                                         at::kCPU, stop);
  law(costs && costs->empty(), "nothing was asked for");
}

const Registered registered({"costs", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
