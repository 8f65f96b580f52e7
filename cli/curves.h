// Curves of several runs in one picture, as a script of gnuplot.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace reformer::cli {

struct Curve {
  std::string label;
  int color = 0;        // the curves of a run share one
  bool sparse = false;  // few points, shown as such, on a dashed line
  std::vector<std::pair<double, double>> points;  // step, value; NaN: a gap
};

// The y axis is logarithmic where values are positive and span a factor of 20.
// Curves have at least one point; one of many is drawn twice: pale as it is,
// and its running mean.
std::string curves_script(const std::vector<Curve>& curves,
                          const std::string& title, const std::string& y_label);

}  // namespace reformer::cli
