// What an LSH layer of a trained model attends to, as a script of gnuplot:
// the attention matrix in natural order, and sorted by bucket (paper Fig. 2).
#pragma once

#include <cstdint>
#include <string>

#include "cli/draw/gnuplot_script.h"

namespace reformer::cli {

// All counted from 1.
struct AttentionPlot {
  int64_t layer = 1;
  int64_t head = 1;
  int64_t round = 1;
  std::string data = {};  // in place of task.data
};

// Of the first validation sequence, its first kPlotPositions at most. Throws
// Error where the model has no such layer, head or round, or the layer is not
// LSH.
inline constexpr int64_t kPlotPositions = 512;
Script attention_script(const std::string& directory,
                        const AttentionPlot& plot);

}  // namespace reformer::cli
