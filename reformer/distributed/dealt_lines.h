// Lines of text of which each rank takes some.
#pragma once

#include <string>
#include <vector>

#include "reformer/distributed/world.h"

namespace reformer {

using Lines = std::vector<std::string>;

// Of R ranks the r-th takes the lines r, r + R, r + 2 R and so on, since lines
// that follow one another are often alike; null: all.
Lines dealt_lines(const Lines& lines, const World* world);

// The way back: of all ranks' lines those `count` that were dealt, in their
// order. A line may hold any byte.
Lines gathered_lines(const Lines& own, size_t count, World* world);

}  // namespace reformer
