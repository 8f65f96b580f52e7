// What training steps cost, by depth and by length: measured once, kept in a
// file.
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reformer/config/config.h"

namespace reformer::cli {

// A step to measure.
struct CostPoint {
  std::string row;     // "depth" or "speed": which panel it is of
  std::string series;  // "lsh-4"
  Config config;
};

struct StepCost {
  std::string row;
  std::string series;
  int64_t layers = 0;
  int64_t length = 0;
  int64_t batch = 0;
  double step_s = 0;
  int64_t peak_bytes = 0;
  // Of the peak, without what has to grow with depth: parameters, gradients,
  // optimizer state and bucket ids, as `reformer info` counts them.
  int64_t rest_bytes = 0;
  int64_t parameters = 0;
  std::string machine;

  double us_per_token() const;
  bool is_of(const CostPoint& point) const;
};

// The costs of all points, in order. Those in DIR/costs.jsonl are not measured
// again; each new one is added there, and a line on it printed. Nothing when
// `stop` became true.
std::optional<std::vector<StepCost>> measured_costs(
    const std::string& folder, const std::vector<CostPoint>& points,
    at::Device device, const std::atomic<bool>& stop);

// "row", "series", "layers", "length", …, and "us_per_token", a line each; with
// "figure" where that is not empty.
std::string json_lines_of(const std::string& figure,
                          const std::vector<StepCost>& costs);

std::string table_of(const std::vector<StepCost>& costs);

}  // namespace reformer::cli
