// A model and its training in words, for people.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "reformer/config/config.h"
#include "reformer/tasks/task.h"

namespace reformer::cli {

bool has_lsh(const Config& config);

// What 0 of lsh.n_buckets stands for, else that.
int64_t bucket_count(const Config& config);

// 1234567 as 1,234,567.
std::string grouped(int64_t number);

std::string mebibytes(int64_t bytes);

// Its layers and its positions: two lines.
std::string describe_model(const Config& config);

// What a run is about to do: model, data, steps, memory, where it writes. The
// rest is in the run's config.json.
std::string describe_run(const Config& config, const Task& task,
                         c10::Device device, const std::string& directory);

}  // namespace reformer::cli
