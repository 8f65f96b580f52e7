#include "cli/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

#include "cli/gnuplot.h"

namespace reformer::cli {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr double kLogarithmicFrom = 20;  // largest value / smallest
constexpr double kFewDecades = 1000;     // more of them need no tics between
constexpr size_t kKeyInside = 4;         // curves that leave room for the key
constexpr size_t kSmoothedFrom = 100;    // points of a curve
constexpr size_t kMeans = 40;            // windows in a smoothed curve

constexpr std::array<const char*, 8> kColors = {"09577f", "d1495b", "3d8b37",
                                                "e08e1b", "7b4fa3", "2a9d9a",
                                                "8c5a3c", "555555"};

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
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool empty() const { return least > most; }
};

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

// gnuplot's own ranges end at tics: a logarithmic one may be mostly empty.
std::string logarithmic_axis(const Range& y) {
  const double pad = std::pow(y.most / y.least, 0.04);
  const std::string twos_and_fives =
      "set for [e = -9:9] ytics add (sprintf('%g', 2 * 10.0**e) 2 * 10.0**e, "
      "sprintf('%g', 5 * 10.0**e) 5 * 10.0**e)\n";
  return "set logscale y 10\nset mytics 10\nset yrange [" +
         number(y.least / pad) + ":" + number(y.most * pad) + "]\n" +
         (y.most < kFewDecades * y.least ? twos_and_fives : "");
}

std::string linear_axis(const Range& y, bool from_zero) {
  const bool flat = y.most <= y.least;
  const double size = std::max(std::abs(y.most), 1e-30);
  const double pad = 0.04 * (flat ? size : y.most - y.least);
  const double least = from_zero && y.least > 0 ? 0 : y.least - pad;
  return "set yrange [" + number(least) + ":" + number(y.most + pad) + "]\n";
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

std::string y_axis(const std::vector<Curve>& curves, const Axes& axes) {
  const Range y = values_of(curves, axes.settled_from);
  if (y.empty()) return "set yrange [0:1]\n";  // else gnuplot gives up
  const bool logarithmic = y.least > 0 && y.most >= kLogarithmicFrom * y.least;
  return logarithmic ? logarithmic_axis(y) : linear_axis(y, axes.from_zero);
}

// Where there are points: "3, 6, 12".
std::string places_of(const std::vector<Curve>& curves) {
  std::set<double> places;
  for (const auto& curve : curves) {
    for (const auto& point : curve.points) places.insert(point.first);
  }
  std::string text;
  for (const double x : places) text += (text.empty() ? "" : ", ") + number(x);
  return text;
}

std::string x_axis(const std::vector<Curve>& curves, bool doubling) {
  Range range;
  if (!doubling) range.include(1);
  for (const auto& curve : curves) {
    for (const auto& point : curve.points) range.include(point.first);
  }
  if (!doubling) return "set xrange [0:" + number(1.01 * range.most) + "]\n";
  return "set logscale x 2\nset xrange [" + number(range.least / 1.1) + ":" +
         number(range.most * 1.1) + "]\nset xtics (" + places_of(curves) +
         ")\n";
}

// Where the curves are not: most fall, accuracies rise.
std::string key(const std::vector<Curve>& curves, const Axes& axes) {
  if (curves.size() > kKeyInside) return "set key outside spacing 1.3\n";
  if (axes.from_zero) return "set key below spacing 1.3\n";
  const auto& points = curves.front().points;
  const bool rises = points.back().second > points.front().second;
  return std::string("set key ") + (rises ? "bottom" : "top") +
         " right spacing 1.3\n";
}

// A named block of data: $name << EOD ... EOD.
std::string data_block(const std::string& name, const Points& points) {
  std::string block = name + " << EOD\n";
  for (const auto& [step, value] : points) {
    const bool shown = std::isfinite(value);
    block += number(step) + " " + (shown ? number(value) : "NaN") + "\n";
  }
  return block + "EOD\n";
}

struct Drawing {
  std::string blocks;
  std::string plots;  // joined by commas

  void add_errors(const std::string& name, const Curve& curve,
                  const std::string& style) {
    blocks += name + " << EOD\n";
    for (size_t i = 0; i < curve.points.size(); ++i) {
      const auto [x, value] = curve.points[i];
      const bool shown = std::isfinite(value + curve.errors[i]);
      blocks += number(x) + " " + (shown ? number(value) : "NaN") + " " +
                (shown ? number(curve.errors[i]) : "NaN") + "\n";
    }
    blocks += "EOD\n";
    plots += ", \\\n  " + name + " using 1:2:3 " + style;
  }

  void add(const std::string& name, const Points& points,
           const std::string& style) {
    blocks += data_block(name, points);
    plots += (plots.empty() ? "" : ", \\\n  ") + name + " using 1:2 " + style;
  }
};

void add_curve(Drawing& drawing, const Curve& curve, size_t index) {
  const std::string name = "$curve" + std::to_string(index);
  const std::string color = kColors[curve.color % kColors.size()];
  const std::string title =
      " title " + gnuplot_quoted(curve.label) + " noenhanced";
  const std::string line = "linecolor rgb '#" + color + "' linewidth 2";
  if (curve.sparse) {
    drawing.add(name, curve.points,
                "with linespoints dashtype (5,4) pointtype 7 " + line + title);
  } else if (smoothed(curve)) {
    drawing.add(
        name + "raw", curve.points,
        "with lines linewidth 0.7 linecolor rgb '#b0" + color + "' notitle");
    drawing.add(name, running_mean(curve.points), "with lines " + line + title);
  } else {
    drawing.add(name, curve.points, "with lines " + line + title);
  }
  if (curve.errors.empty()) return;
  drawing.add_errors(name + "errors", curve,
                     "with yerrorbars pointtype 7 pointsize 0.6 linewidth 1 "
                     "linecolor rgb '#" +
                         color + "' notitle");
}

}  // namespace

std::string curves_script(const std::vector<Curve>& curves, const Axes& axes) {
  Drawing drawing;
  for (size_t i = 0; i < curves.size(); ++i) add_curve(drawing, curves[i], i);
  return "set title " + gnuplot_quoted(axes.title) +
         " noenhanced font ',16'\n" + "set xlabel " +
         gnuplot_quoted(axes.x_label) + " noenhanced\n" + "set ylabel " +
         gnuplot_quoted(axes.y_label) + " noenhanced\n" +
         x_axis(curves, axes.doubling_x) + y_axis(curves, axes) +
         key(curves, axes) +
         "set format x '%.0f'\nset format y '%g'\n"
         "set grid xtics ytics linetype 1 linewidth 0.7 "
         "linecolor rgb '#e0e0e0'\n"
         "set border 3 linecolor rgb '#606060'\n"
         "set tics nomirror\n" +
         drawing.blocks + "plot " + drawing.plots + "\n";
}

std::string panels_script(const std::vector<Panel>& panels, size_t columns) {
  const size_t rows = (panels.size() + columns - 1) / columns;
  std::string script = "set multiplot layout " + std::to_string(rows) + "," +
                       std::to_string(columns) + "\n";
  for (const auto& [axes, curves] : panels) {
    script += "reset\n" + curves_script(curves, axes);
  }
  return script + "unset multiplot\n";
}

}  // namespace reformer::cli
