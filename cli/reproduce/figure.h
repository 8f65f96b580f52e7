// What is made of an experiment's curves: a table, JSON lines, a plot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/draw/curves.h"
#include "cli/draw/gnuplot.h"
#include "cli/reproduce/experiment.h"

namespace reformer::cli {

// Says what it does, and trains. The curves of all variants, the table of them
// printed; nothing when it was asked to stop, which it says.
std::optional<std::vector<Series>> trained_series(const std::string& title,
                                                  const Experiment& experiment,
                                                  at::Device device);

// A row for every point, told apart by "row":
//   point       figure, series, seed, step, metric, value
//   mean        figure, series, step, mean, standard_error, seeds
//   difference  likewise, and "against", the first series
// A standard error of one seed is null.
std::string json_lines_of(const std::string& figure,
                          const std::vector<Series>& series,
                          int64_t first_seed);

// Two panels: means over the seeds, and differences to the first of `series`,
// seed by seed, each with its standard errors and scaled to what comes after a
// fifth of the steps. Those named in `shown`, or all where that is empty.
std::vector<Panel> comparison(const std::vector<Series>& series,
                              const std::string& title,
                              const std::vector<std::string>& shown = {});

// DIR/NAME.jsonl and DIR/NAME.png, with a word on each. Where no plot can be
// drawn the numbers stay, and it says why.
struct Figure {
  std::string folder;
  std::string name;
  std::string json_lines;
  Script script;
  PlotSize size;
};
void write_figure(const Figure& figure);

}  // namespace reformer::cli
