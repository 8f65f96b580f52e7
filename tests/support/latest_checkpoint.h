// The newest checkpoint of a run, as one rank goes on from it that keeps all.
#pragma once

#include <optional>
#include <string>

#include "reformer/io/checkpoint.h"
#include "reformer/io/checkpoint_rows.h"

namespace reformer {

inline std::optional<Checkpoint> load_latest_checkpoint(
    const std::string& directory) {
  auto checkpoint = load_latest_model(directory);
  if (!checkpoint) return {};
  checkpoint->optimizer = load_optimizer_rows(
      directory, checkpoint->step, /*reader=*/{},
      [](const std::string&, at::IntArrayRef sizes) -> RowRange {
        return {0, row_count(sizes)};
      });
  return checkpoint;
}

}  // namespace reformer
