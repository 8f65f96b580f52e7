// A run of an experiment: trained, gone on with, or found done.
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <string>

#include "reformer/config/config.h"

namespace reformer::cli {

struct ExperimentRun {
  std::string title;  // "training with full attention"
  std::string folder;
  Config config;
};

// Trains the run from where its folder's newest checkpoint left it; nothing
// where that is its last step. False when it was asked to stop: it has saved
// then. Throws Error where the folder was begun with other settings.
bool train_or_resume(const ExperimentRun& run, at::Device device,
                     const std::atomic<bool>& stop);

}  // namespace reformer::cli
