// Whatever a title, a label or a path holds, gnuplot takes none of it for a
// command.
#include "cli/draw/gnuplot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <type_traits>

#include "cli/draw/curves.h"
#include "cli/draw/position_losses.h"
#include "cli/draw/repeat_losses.h"
#include "tests/io/temporary_folder.h"

namespace reformer::cli {
namespace {

namespace fs = std::filesystem;

template <class Piece>
concept Accepted = requires(Script script, Piece piece) {
  script << piece;
};

// What cannot be compiled cannot be forgotten.
static_assert(!Accepted<std::string>);
static_assert(!Accepted<const char*>);
static_assert(!Accepted<std::string_view>);
static_assert(!std::is_convertible_v<std::string, Script>);
static_assert(!std::is_convertible_v<std::string, Quoted>);
static_assert(Accepted<Quoted> && Accepted<double> && Accepted<size_t>);

// The script with every 'string' replaced by S; what it read goes to `strings`.
// Fails for a string that does not end on its line, for double quotes and for
// backquotes: gnuplot runs what is between the latter.
std::string skeleton_of(const std::string& script,
                        std::vector<std::string>& strings) {
  std::string skeleton;
  for (size_t at = 0; at < script.size(); ++at) {
    EXPECT_TRUE(script[at] != '"' && script[at] != '`') << script;
    if (script[at] != '\'') {
      skeleton += script[at];
      continue;
    }
    std::string text;
    for (++at; at < script.size(); ++at) {
      if (script[at] == '\'' && script.substr(at + 1, 1) != "'") break;
      if (script[at] == '\'') ++at;
      text += script[at];
    }
    EXPECT_LT(at, script.size()) << "no end: " << text;
    EXPECT_EQ(text.find_first_of(std::string("\0\n\r", 3)), text.npos) << text;
    strings.push_back(text);
    skeleton += 'S';
  }
  return skeleton;
}

struct Texts {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::string label;
};

Script all_kinds_of(const Texts& texts) {
  std::vector<std::pair<double, double>> many;
  for (int i = 0; i < 120; ++i) many.emplace_back(i, 1.0 / (1 + i));
  const std::vector<Curve> curves = {
      {texts.label, 0, false, many, {}},
      {texts.label, 1, true, {{1, 2.5}, {2, NAN}}, {}},
      {texts.label, 2, false, {{1, 2.5}, {2, 1e308}}, {0.5, INFINITY}}};
  Axes axes{texts.title, texts.y_label, texts.x_label};
  Script script = panels_script({{axes, curves}, {axes, curves}}, 2);
  script << position_script({{texts.label, {{0, 64, 2.5}, {64, 128, 2}}}},
                            texts.title, texts.y_label)
         << "reset\n"
         << repeat_script({{texts.label, {{1024, 0.5, 1.5, 1.5}}}}, texts.title,
                          texts.y_label);
  return script;
}

std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> kAttacks = {"'",
                                                    "''",
                                                    "\"",
                                                    "`touch pwned`",
                                                    "\n!touch pwned\n",
                                                    "\\",
                                                    "\\\n",
                                                    "$(x)",
                                                    "@x",
                                                    "#",
                                                    ";",
                                                    "system('touch pwned')",
                                                    "|touch pwned",
                                                    "< touch pwned",
                                                    "\nEOD\n",
                                                    "{/:Bold x}",
                                                    "\r",
                                                    "%s%n",
                                                    "é",
                                                    "\xFF"};
  std::string text;
  for (auto pieces = random() % 6; pieces > 0; --pieces) {
    if (random() % 2 == 0) {
      text += kAttacks[random() % kAttacks.size()];
    } else {
      for (auto n = random() % 9; n > 0; --n) text += char(random() % 256);
    }
  }
  return text;
}

TEST(GnuplotScript, NoTextChangesAnythingButItsOwnString) {
  std::mt19937 random(1);
  std::vector<std::string> plain_strings;
  const std::string plain =
      skeleton_of(all_kinds_of({"title", "x", "y", "label"}), plain_strings);
  for (int i = 0; i < 2000; ++i) {
    const Texts texts = {random_text(random), random_text(random),
                         random_text(random), random_text(random)};
    std::vector<std::string> strings;
    // A quoted backquote is a text; one outside of quotes is not.
    std::string script = all_kinds_of(texts);
    std::replace(script.begin(), script.end(), '`', 'b');
    std::replace(script.begin(), script.end(), '"', 'd');
    ASSERT_EQ(skeleton_of(script, strings), plain);
    ASSERT_EQ(strings.size(), plain_strings.size());
  }
}

TEST(GnuplotScript, ShowsNumbersThatGnuplotCanRead) {
  Script script;
  script << 0.1 << " " << -INFINITY << " " << NAN << " " << size_t{7};
  EXPECT_EQ(std::string(script), "0.1 NaN NaN 7");
}

TEST(GnuplotScript, HasNoInfinityWhateverTheNumbersAre) {
  for (const double value : {1e308, -1e308, 1e-308, 5e-324, double(INFINITY)}) {
    const std::vector<Curve> curves = {
        {"a", 0, false, {{1, value}, {2, 1}}, {1, value}}};
    const std::string script = curves_script(curves, {"title", "y"});
    EXPECT_EQ(script.find("inf"), script.npos) << script;
    EXPECT_EQ(script.find("yrange [NaN"), script.npos) << script;
    EXPECT_EQ(script.find("yrange [0:NaN"), script.npos) << script;
  }
}

class GnuplotTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("gnuplot --version >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "gnuplot is missing";
    }
    home_ = fs::current_path();
    fs::current_path(folder_.path());  // where commands would leave traces
  }
  void TearDown() override {
    if (!home_.empty()) fs::current_path(home_);
  }

  fs::path home_;
  const TemporaryFolder folder_;
};

const std::string kAttack =
    "x'\n!touch pwned\n'`touch pwned`\"`touch pwned`\"; system('touch pwned') "
    "$(touch pwned) @pwned {/:Bold b}_c^d & <script/> %s";

TEST_F(GnuplotTest, RunsNothingAndShowsTextsAsTheyAre) {
  for (const std::string name : {"a.png", "a.svg"}) {
    draw_plot(all_kinds_of({kAttack, kAttack, kAttack, kAttack}), name);
    EXPECT_GT(fs::file_size(name), 1000u);
  }
  EXPECT_FALSE(fs::exists("pwned"));
  std::ostringstream svg;
  svg << std::ifstream("a.svg").rdbuf();
  EXPECT_NE(svg.str().find("{/:Bold b}_c^d &amp; &lt;script"),
            std::string::npos);
}

TEST_F(GnuplotTest, TakesNoNameForACommand) {
  const std::string folder = "|touch pwned; '`touch pwned`'\n!touch pwned\n";
  fs::create_directory(folder);
  const fs::path plot = fs::path(folder) / "it's\n`touch pwned`.png";
  draw_plot(all_kinds_of({}), plot.string());
  EXPECT_TRUE(fs::exists(plot));
  EXPECT_FALSE(fs::exists("pwned"));
  EXPECT_EQ(std::distance(fs::directory_iterator("."), {}), 1);
}

}  // namespace
}  // namespace reformer::cli
