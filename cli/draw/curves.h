// Curves of several runs in one plot, as a script of gnuplot.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/draw/gnuplot_script.h"

namespace reformer::cli {

struct Curve {
  std::string label;
  int color = 0;        // the curves of a run share one
  bool sparse = false;  // few points, shown as such, on a dashed line
  std::vector<std::pair<double, double>> points;  // x, value; NaN: a gap
  std::vector<double> errors;  // of each point, as bars; empty: none
};

struct Axes {
  std::string title;
  std::string y_label;
  std::string x_label = "step";
  bool doubling_x = false;  // points at 1, 2, 4, 8, … are equally far apart
  bool from_zero = false;   // y, where it is not logarithmic
  // Values before this x may leave the plot: a first loss would squeeze all
  // that follows into a line.
  double settled_from = 0;
};

// The y axis is logarithmic where values are positive and span a factor of 20.
// Curves have at least one point; one of many is drawn twice: pale as it is,
// and its running mean.
Script curves_script(const std::vector<Curve>& curves, const Axes& axes);

// Several of them in one plot, row by row.
struct Panel {
  Axes axes;
  std::vector<Curve> curves;
};
Script panels_script(const std::vector<Panel>& panels, size_t columns);

}  // namespace reformer::cli
