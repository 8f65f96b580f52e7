// What a person sees while a long prompt is read.
#pragma once

#include <string>

#include "cli/bench/timing.h"
#include "cli/screen/output.h"
#include "reformer/generate/decoder.h"

namespace reformer::cli {

// One line on stderr, where that is a terminal, that says how far it is and how
// long it will take; it goes when this does, which must be before other text
// stands there.
class PrefillScreen {
 public:
  explicit PrefillScreen(std::string what) : what_(std::move(what)) {}

  // Stops by stop_requested. Not to be used after this has gone.
  PrefillWatch watch();

 private:
  void show(double share);

  std::string what_;
  Stopwatch begin_;
  Stopwatch shown_;
  Report report_{/*json=*/false};
};

// The same without a word.
PrefillWatch silent_watch();

}  // namespace reformer::cli
