// What `reformer eval` was asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reformer::cli {

struct EvalOptions {
  std::string directory;
  std::string data;
  std::vector<std::string> assignments;  // --set key=value
  std::string split = "validation";
  std::vector<int64_t> rounds = {0};
  int64_t batches = 0;
  std::vector<int64_t> lengths = {0};  // 0: as in training
  bool by_position = false;
  std::vector<int64_t> recall;  // distances
  std::string png;
  bool our_attention = false;
  std::string device = "auto";
  int64_t threads = 0;
  bool json = false;
  int64_t beam = 4;  // 0: no translations
  double length_penalty = 0.6;
};

}  // namespace reformer::cli
