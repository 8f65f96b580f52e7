// What has happened, as Prometheus reads it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cli/serve/engine.h"

namespace reformer::cli {

// predicted: bytes of caches; answered: how many answers of each status.
std::string metrics_text(const EngineCounts& counts, int64_t predicted,
                         const std::map<int, int64_t>& answered);

}  // namespace reformer::cli
