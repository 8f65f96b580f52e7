// How a model's loss depends on how much it has seen: means over ranges of
// positions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/draw/gnuplot_script.h"

namespace reformer::cli {

struct PositionRange {
  int64_t begin;
  int64_t end;
  double value;  // the mean
};

// From the values of single positions (NaN: none) the means over [0, 64),
// [64, 128), [128, 256), ... Ranges without any value are left out.
std::vector<PositionRange> position_ranges(const std::vector<double>& values);

struct PositionCurve {
  std::string label;
  std::vector<PositionRange> ranges;
};

// A script of gnuplot: value against position, which is logarithmic.
Script position_script(const std::vector<PositionCurve>& curves,
                       const std::string& title, const std::string& y_label);

}  // namespace reformer::cli
