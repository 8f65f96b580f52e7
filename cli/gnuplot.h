// Pictures, drawn by the program gnuplot.
#pragma once

#include <string>

namespace reformer::cli {

// The size in pixels.
struct PictureSize {
  int width = 1100;
  int height = 750;
};

// Runs `script` with the terminal that the ending of `path` names, .png or
// .svg. The picture appears at `path` whole, or Error is thrown: an unknown
// ending, a missing folder, no gnuplot on this machine, what it complained of.
void draw_picture(const std::string& script, const std::string& path,
                  PictureSize size = {});

// As gnuplot reads it back, whatever it holds: 'it''s'.
std::string gnuplot_quoted(const std::string& text);

}  // namespace reformer::cli
