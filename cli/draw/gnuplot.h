// Plots, drawn by the program gnuplot.
#pragma once

#include <string>

#include "cli/draw/gnuplot_script.h"

namespace reformer::cli {

// The size in pixels.
struct PlotSize {
  int width = 1100;
  int height = 750;
};

// Throws Error where draw_plot would refuse `path` before any work: an
// ending other than .png and .svg, a missing folder.
void check_plot_path(const std::string& path);

// Runs `script` with the terminal that the ending of `path` names. The plot
// appears at `path` whole, or Error is thrown and what was there stays: no
// gnuplot on this machine, what it complained of, a disk that is full. All
// texts show as they are: _ and ^ have no meaning.
void draw_plot(const Script& script, const std::string& path,
               PlotSize size = {});

}  // namespace reformer::cli
