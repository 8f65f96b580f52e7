#include "cli/draw/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

namespace reformer::cli {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr double kLogarithmicFrom = 20;  // largest value / smallest
constexpr double kFewDecades = 1000;     // more of them need no tics between
constexpr size_t kKeyBelow = 4;          // curves whose key fits there
constexpr size_t kSmoothedFrom = 100;    // points of a curve
constexpr size_t kMeans = 40;            // windows in a smoothed curve

// What a double holds beyond this is no measurement, and sums of it overflow.
constexpr double kLargest = 1e300;
constexpr double kLeastLogarithmic = 1e-200;

constexpr std::array<Literal, 8> kColors = {"09577f", "d1495b", "3d8b37",
                                            "e08e1b", "7b4fa3", "2a9d9a",
                                            "8c5a3c", "555555"};

bool is_drawn(double value) { return std::abs(value) <= kLargest; }

// Of the finite ones in [first, last].
double mean_of(const Points& points, size_t first, size_t last) {
  double sum = 0;
  double count = 0;
  for (size_t i = first; i <= last; ++i) {
    if (!std::isfinite(points[i].second)) continue;
    sum += points[i].second;
    ++count;
  }
  return sum / count;
}

// The mean of the values around each, fewer of them at both ends.
Points running_mean(const Points& points) {
  const size_t half = std::max<size_t>(points.size() / kMeans / 2, 1);
  Points means;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t reach = std::min({half, i, points.size() - 1 - i});
    means.emplace_back(points[i].first, mean_of(points, i - reach, i + reach));
  }
  return means;
}

bool smoothed(const Curve& curve) {
  return !curve.sparse && curve.points.size() >= kSmoothedFrom;
}

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void include(double value) {
    if (!is_drawn(value)) return;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool empty() const { return least > most; }
};

// gnuplot's own ranges end at tics: a logarithmic one may be mostly empty.
Script logarithmic_axis(const Range& y) {
  const double pad = std::exp(0.04 * (std::log(y.most) - std::log(y.least)));
  Script script;
  script << "set logscale y 10\nset mytics 10\nset yrange [" << y.least / pad
         << ":" << y.most * pad << "]\n";
  if (y.most / kFewDecades < y.least) {
    script << "set for [e = -9:9] ytics add (sprintf('%g', 2 * 10.0**e) "
              "2 * 10.0**e, sprintf('%g', 5 * 10.0**e) 5 * 10.0**e)\n";
  }
  return script;
}

Script linear_axis(const Range& y, bool from_zero) {
  const bool flat = y.most <= y.least;
  const double size = std::max(std::abs(y.most), 1e-30);
  const double pad = 0.04 * (flat ? size : y.most - y.least);
  const double least = from_zero && y.least > 0 ? 0 : y.least - pad;
  Script script;
  return script << "set yrange [" << least << ":" << y.most + pad << "]\n";
}

// Of the values that count, with their error bars; of all where none does.
Range values_of(const std::vector<Curve>& curves, double settled_from) {
  Range y;
  for (const auto& curve : curves) {
    for (size_t i = 0; i < curve.points.size(); ++i) {
      const auto [x, value] = curve.points[i];
      if (x < settled_from) continue;
      y.include(value);
      if (curve.errors.empty()) continue;
      y.include(value - curve.errors[i]);
      y.include(value + curve.errors[i]);
    }
  }
  return y.empty() && settled_from > 0 ? values_of(curves, 0) : y;
}

Script y_axis(const std::vector<Curve>& curves, const Axes& axes) {
  const Range y = values_of(curves, axes.settled_from);
  if (y.empty()) return Script() << "set yrange [0:1]\n";  // else it gives up
  const bool logarithmic =
      y.least > kLeastLogarithmic && y.most / kLogarithmicFrom >= y.least;
  return logarithmic ? logarithmic_axis(y) : linear_axis(y, axes.from_zero);
}

// Where there are points: "3, 6, 12".
Script places_of(const std::vector<Curve>& curves) {
  std::set<double> places;
  for (const auto& curve : curves) {
    for (const auto& point : curve.points) places.insert(point.first);
  }
  Script script;
  for (const double x : places) {
    if (!script.empty()) script << ", ";
    script << x;
  }
  return script;
}

Script x_axis(const std::vector<Curve>& curves, bool doubling) {
  Range range;
  if (!doubling) range.include(1);
  for (const auto& curve : curves) {
    for (const auto& point : curve.points) range.include(point.first);
  }
  Script script;
  if (!doubling) {
    return script << "set xrange [0:" << 1.01 * range.most << "]\n";
  }
  return script << "set logscale x 2\nset xrange [" << range.least / 1.1 << ":"
                << range.most * 1.1 << "]\nset xtics (" << places_of(curves)
                << ")\n";
}

// Never over the curves: below the axes, or beside them where there are many.
Literal key(const std::vector<Curve>& curves) {
  if (curves.size() > kKeyBelow) return "set key outside spacing 1.3\n";
  return "set key below spacing 1.3\n";
}

double shown(double value) { return is_drawn(value) ? value : NAN; }

// A named block of data: $name << EOD ... EOD.
Script data_block(const Script& name, const Points& points) {
  Script block;
  block << name << " << EOD\n";
  for (const auto& [step, value] : points) {
    block << step << " " << shown(value) << "\n";
  }
  return block << "EOD\n";
}

struct Drawing {
  Script blocks;
  Script plots;  // joined by commas

  void add_errors(const Script& name, const Curve& curve, const Script& style) {
    blocks << name << " << EOD\n";
    for (size_t i = 0; i < curve.points.size(); ++i) {
      const auto [x, value] = curve.points[i];
      const bool both = is_drawn(value) && is_drawn(curve.errors[i]);
      blocks << x << " " << (both ? value : NAN) << " "
             << (both ? curve.errors[i] : NAN) << "\n";
    }
    blocks << "EOD\n";
    plots << ", \\\n  " << name << " using 1:2:3 " << style;
  }

  void add(const Script& name, const Points& points, const Script& style) {
    blocks << data_block(name, points);
    if (!plots.empty()) plots << ", \\\n  ";
    plots << name << " using 1:2 " << style;
  }
};

void add_curve(Drawing& drawing, const Curve& curve, size_t index) {
  const Literal color = kColors[curve.color % kColors.size()];
  Script name;
  name << "$curve" << index;
  Script line;
  line << "linecolor rgb '#" << color << "' linewidth 2 title "
       << Quoted(curve.label);
  Script style;
  if (curve.sparse) {
    style << "with linespoints dashtype (5,4) pointtype 7 " << line;
    drawing.add(name, curve.points, style);
  } else if (smoothed(curve)) {
    Script pale;
    pale << "with lines linewidth 0.7 linecolor rgb '#b0" << color
         << "' notitle";
    drawing.add(Script(name) << "raw", curve.points, pale);
    style << "with lines " << line;
    drawing.add(name, running_mean(curve.points), style);
  } else {
    const bool single = curve.points.size() == 1;
    style << (single ? Literal("with points pointtype 7 ")
                     : Literal("with lines "))
          << line;
    drawing.add(name, curve.points, style);
  }
  if (curve.errors.empty()) return;
  Script bars;
  bars << "with yerrorbars pointtype 7 pointsize 0.6 linewidth 1 linecolor rgb "
          "'#"
       << color << "' notitle";
  drawing.add_errors(Script(name) << "errors", curve, bars);
}

}  // namespace

Script curves_script(const std::vector<Curve>& curves, const Axes& axes) {
  Drawing drawing;
  for (size_t i = 0; i < curves.size(); ++i) add_curve(drawing, curves[i], i);
  Script script;
  script << "set title " << Quoted(axes.title) << " font ',16'\nset xlabel "
         << Quoted(axes.x_label) << "\nset ylabel " << Quoted(axes.y_label)
         << "\n"
         << x_axis(curves, axes.doubling_x) << y_axis(curves, axes)
         << key(curves)
         << "set format x '%.0f'\nset format y '%g'\n"
            "set grid xtics ytics linetype 1 linewidth 0.7 "
            "linecolor rgb '#e0e0e0'\n"
            "set border 3 linecolor rgb '#606060'\n"
            "set tics nomirror\n"
         << drawing.blocks << "plot " << drawing.plots << "\n";
  return script;
}

Script panels_script(const std::vector<Panel>& panels, size_t columns) {
  const size_t rows = (panels.size() + columns - 1) / columns;
  Script script;
  script << "set multiplot layout " << rows << "," << columns << "\n";
  for (const auto& [axes, curves] : panels) {
    script << "reset\n" << curves_script(curves, axes);
  }
  return script << "unset multiplot\n";
}

}  // namespace reformer::cli
