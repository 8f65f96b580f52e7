#include "cli/draw/repeat_losses.h"

#include "cli/draw/curves.h"
#include "cli/screen/table.h"

namespace reformer::cli {
namespace {

Curve curve_of(const RepeatCurve& curve, const std::string& name,
               double RepeatPoint::*value, int color) {
  Curve drawn{name + ", " + curve.label, color, /*sparse=*/true, {}, {}};
  for (const auto& point : curve.points) {
    drawn.points.emplace_back(point.distance, point.*value);
  }
  return drawn;
}

}  // namespace

std::string repeat_table(const std::vector<RepeatPoint>& points) {
  const std::vector<Column> columns = {
      {10, "", ""}, {10, "", ""}, {18, "", ""}, {10, "", ""}};
  std::string table =
      table_row(columns, {"distance", "repeat", "first occurrence", "no copy"});
  for (const auto& [distance, repeat, first, no_copy] : points) {
    table += table_row(columns, {std::to_string(distance), fixed(repeat, 4),
                                 fixed(first, 4), fixed(no_copy, 4)});
  }
  return table;
}

Script repeat_script(const std::vector<RepeatCurve>& curves,
                     const std::string& title, const std::string& y_label) {
  std::vector<Curve> drawn;
  for (const auto& curve : curves) {
    const int color = static_cast<int>(drawn.size());
    drawn.push_back(curve_of(curve, "repeat", &RepeatPoint::repeat, color));
    drawn.push_back(
        curve_of(curve, "first occurrence", &RepeatPoint::first, color + 1));
  }
  return curves_script(drawn, {.title = title,
                               .y_label = y_label,
                               .x_label = "distance of the copy",
                               .doubling_x = true,
                               .from_zero = true});
}

}  // namespace reformer::cli
