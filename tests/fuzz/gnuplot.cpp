// cli/draw/curves and cli/draw/position_losses: texts of strangers stay texts,
// and never become statements of gnuplot's.
#include <algorithm>

#include "cli/draw/curves.h"
#include "cli/draw/position_losses.h"
#include "tests/fuzz/gnuplot_lexer.h"
#include "tests/fuzz/pieces.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

using cli::Curve;
using cli::Panel;

constexpr size_t kMostCurves = 6;
constexpr size_t kMostPoints = 4;

Curve curve_of(Pieces& pieces) {
  Curve curve;
  curve.label = pieces.text();
  const uint8_t choice = pieces.byte();
  curve.color = choice & 7;
  curve.sparse = choice & 8;
  const size_t points = 1 + (choice >> 4) % kMostPoints;
  for (size_t i = 0; i < points; ++i) {
    curve.points.emplace_back(double(pieces.byte()), pieces.number<double>());
    if (choice & 128) curve.errors.push_back(pieces.number<double>());
  }
  return curve;
}

Panel panel_of(const std::string& input) {
  Pieces pieces(input);
  Panel panel;
  const uint8_t choice = pieces.byte();
  panel.axes.title = pieces.text();
  panel.axes.y_label = pieces.text();
  panel.axes.x_label = pieces.text();
  panel.axes.doubling_x = choice & 1;
  panel.axes.from_zero = choice & 2;
  do {
    panel.curves.push_back(curve_of(pieces));
  } while (!pieces.at_end() && panel.curves.size() < kMostCurves);
  return panel;
}

Panel with_plain_texts(Panel panel) {
  for (auto* text :
       {&panel.axes.title, &panel.axes.y_label, &panel.axes.x_label}) {
    *text = "text";
  }
  for (auto& curve : panel.curves) curve.label = "text";
  return panel;
}

std::string positions_script(const Panel& panel) {
  std::vector<cli::PositionCurve> curves;
  for (const auto& curve : panel.curves) {
    curves.push_back({curve.label, {{0, 64, curve.points[0].second}}});
  }
  return cli::position_script(curves, panel.axes.title, panel.axes.y_label);
}

// Whatever the texts are, nothing but strings differs.
void compare(const std::string& given, const std::string& plain) {
  const auto one = read_gnuplot(given);
  const auto other = read_gnuplot(plain);
  law(!one.runs_commands, "no text runs a command");
  law(one.statements == other.statements, "no text becomes a statement");
  law(one.strings.size() == other.strings.size(),
      "every text becomes one string");
  for (const auto& string : one.strings) {
    law(std::none_of(string.begin(), string.end(),
                     [](unsigned char c) { return c < ' ' || c == 127; }),
        "no string holds a control character");
  }
}

std::string seed(const std::string& text) {
  return '\0' + piece(text) + piece(text) + piece(text) + piece(text) +
         std::string("\x11\x01", 2) + piece(2.5) + '\x02' + piece(1.5);
}

std::vector<std::string> seeds() {
  return {seed("loss"),       seed("it's"),
          seed("a\\"),        seed("\"b\" `c` $d @e"),
          seed("x\n!true\n"), seed("# 1; 2")};
}

// The last byte chooses which: all three would take three times as long.
void execute(const std::string& input) {
  const Panel given = panel_of(input);
  const Panel plain = with_plain_texts(given);
  switch (input.empty() ? 0 : input.back() & 3) {
    case 1:
      return compare(cli::panels_script({given, given}, 2),
                     cli::panels_script({plain, plain}, 2));
    case 2:
      return compare(positions_script(given), positions_script(plain));
    default:
      return compare(cli::curves_script(given.curves, given.axes),
                     cli::curves_script(plain.curves, plain.axes));
  }
}

const Registered registered({"gnuplot", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
