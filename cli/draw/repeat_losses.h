// What a model needs for text that it has read before: a table and a plot
// of the loss on repeats against how far back the first occurrence lies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/draw/gnuplot_script.h"

namespace reformer::cli {

// Of one distance, in the task's units.
struct RepeatPoint {
  int64_t distance;
  double repeat;
  double first;    // of the same tokens where they come first
  double no_copy;  // of the same tokens in the text as it is
};

struct RepeatCurve {
  std::string label;
  std::vector<RepeatPoint> points;
};

// A line of names and one for each point.
std::string repeat_table(const std::vector<RepeatPoint>& points);

// A script of gnuplot: both occurrences against distance, which is logarithmic.
Script repeat_script(const std::vector<RepeatCurve>& curves,
                     const std::string& title, const std::string& y_label);

}  // namespace reformer::cli
