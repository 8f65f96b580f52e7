// The options that the benchmarks of attention share.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reformer/config/choices.h"
#include "reformer/config/lsh_config.h"

namespace reformer::cli {

enum class DataKind { kRandom, kClustered };

}  // namespace reformer::cli

namespace reformer {

template <>
struct ChoiceNames<cli::DataKind> {
  static constexpr std::string_view key = "--data";
  static constexpr std::string_view names[] = {"random", "clustered"};
};

}  // namespace reformer

namespace reformer::cli {

struct BenchOptions {
  std::string device = "auto";
  Choice<Precision> dtype = Precision::kAuto;
  std::vector<int64_t> lengths;
  std::vector<int64_t> rounds = {1, 4};
  int64_t batch = 1;
  int64_t heads = 8;
  int64_t d_head = 64;
  int64_t chunk_length = 128;
  Choice<Window> window = Window::kTrailing;
  int64_t local_window = 0;
  Choice<DataKind> data = DataKind::kRandom;
  int64_t seed = 0;
  int64_t threads;
  int64_t repeats = 0;  // 0: as many as Repetitions finds enough
  bool json = false;

  explicit BenchOptions(std::vector<int64_t> default_lengths);

  void add_to(CLI::App& app);

  // Throws Error where this build or machine cannot do what is asked for;
  // otherwise sets the threads and returns the device.
  at::Device prepare() const;

  // The same for what only the CPU has: `auto` is that.
  void prepare_cpu() const;

  // Of the data: bfloat16 on a GPU and float32 on the CPU, unless asked for.
  at::ScalarType type_on(at::Device device) const;

  // Of one combination, with the n_buckets of that length.
  LshConfig config(int64_t length, int64_t rounds) const;

  // Two lines: "batch 1, 8 heads of 64, …" and "chunk 128, window …".
  std::string describe(at::Device device) const;
};

// "float32", "bfloat16".
std::string name_of(at::ScalarType type);

}  // namespace reformer::cli
