// How the results of `reformer bench attention` are written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/bench/options.h"

namespace reformer::cli {

struct PassTime {
  double forward_s = 0;
  double backward_s = 0;
};

// Of one length and number of rounds.
struct AttentionMeasurement {
  int64_t length = 0;
  LshConfig config;
  PassTime lsh;
  std::optional<PassTime> exact;
  double keys_per_query = 0;
  double overflow = 0;  // share of same-bucket pairs outside their window
  int64_t extra_bytes = 0;
  at::Device device = at::kCPU;
};

std::string attention_json(const BenchOptions& options,
                           const AttentionMeasurement& measured);

std::string attention_table_head();
std::string attention_table_row(const BenchOptions& options,
                                const AttentionMeasurement& measured);

}  // namespace reformer::cli
