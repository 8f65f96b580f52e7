#include "cli/draw/position_losses.h"

#include <algorithm>
#include <cmath>

namespace reformer::cli {

std::vector<PositionRange> position_ranges(const std::vector<double>& values) {
  constexpr int64_t kFirst = 64;
  const auto count = static_cast<int64_t>(values.size());
  std::vector<PositionRange> ranges;
  for (int64_t begin = 0, end = kFirst; begin < count; begin = end, end *= 2) {
    double sum = 0;
    int64_t counted = 0;
    for (int64_t i = begin; i < std::min(end, count); ++i) {
      if (std::isnan(values[i])) continue;
      sum += values[i];
      ++counted;
    }
    if (counted == 0) continue;
    ranges.push_back({begin, std::min(end, count), sum / double(counted)});
  }
  return ranges;
}

Script position_script(const std::vector<PositionCurve>& curves,
                       const std::string& title, const std::string& y_label) {
  Script script;
  Script plots;
  for (size_t c = 0; c < curves.size(); ++c) {
    script << "$curve" << c << " << EOD\n";
    for (const auto& [begin, end, value] : curves[c].ranges) {
      script << std::sqrt(double(std::max<int64_t>(begin, 32)) * double(end))
             << " " << value << "\n";
    }
    script << "EOD\n";
    if (c > 0) plots << ", ";
    plots << "$curve" << c
          << " using 1:2 with linespoints linewidth 2 pointtype 7 title "
          << Quoted(curves[c].label);
  }
  return script << "set title " << Quoted(title)
                << " font ',16'\nset xlabel 'position'\nset ylabel "
                << Quoted(y_label)
                << "\nset logscale x 2\nset format x '%.0f'\n"
                   "set format y '%g'\nset grid\nset border 3\n"
                   "set tics nomirror\nset key top right\nplot "
                << plots << "\n";
}

}  // namespace reformer::cli
