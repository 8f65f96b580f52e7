// `reformer generate DIR` of a model of images: half an image, and what the
// model makes of the rest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/command_line.h"
#include "reformer/generate/completion.h"
#include "reformer/model/language_model.h"

namespace reformer::cli {

struct CompleteImagesOptions {
  std::vector<int64_t> images;     // of the validation split
  std::vector<std::string> files;  // or these images; neither: the first 4
  std::string data;                // empty: the run's
  int64_t samples = 3;
  std::optional<std::string> out;  // none: completion.png, or with a number

  void add_to(CLI::App& command);
};

// Writes a grid as PNG, a row for each image: its upper half, `samples`
// completions, the original. Throws Error for images that are not there,
// Interrupted when it was told to stop.
void complete_images(const CompleteImagesOptions& options,
                     const CompletionConfig& config,
                     const LanguageModel& model);

}  // namespace reformer::cli
