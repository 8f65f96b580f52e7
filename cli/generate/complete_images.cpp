#include "cli/generate/complete_images.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "cli/bench/timing.h"
#include "cli/generate/prefill_screen.h"
#include "cli/generate/prompt.h"
#include "cli/process/stop_signal.h"
#include "cli/screen/open_task.h"
#include "cli/screen/output.h"
#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/data/image.h"
#include "reformer/data/image_grid.h"
#include "reformer/data/png.h"

namespace reformer::cli {
namespace {

constexpr uint8_t kGrey = 128;        // of what is not given
constexpr int64_t kGridPixels = 128;  // about so many for an image's side
constexpr int64_t kImages = 4;        // where none is named
constexpr const char* kDefaultOut = "completion.png";

// [length] tokens, as the task has them.
at::Tensor tokens_of(const Image& image) {
  auto tokens = at::empty({static_cast<int64_t>(image.rgb.size())}, at::kLong);
  std::copy(image.rgb.begin(), image.rgb.end(),
            tokens.mutable_data_ptr<int64_t>());
  return tokens;
}

Image image_of(const at::Tensor& tokens, int64_t size) {
  const auto flat = tokens.contiguous();
  const auto* begin = flat.const_data_ptr<int64_t>();
  Image image{size, size, {}};
  for (const int64_t* s = begin; s != begin + flat.numel(); ++s) {
    image.rgb.push_back(static_cast<uint8_t>(*s));
  }
  return image;
}

at::Tensor file_tokens(const std::string& path, int64_t size) {
  const std::string bytes = contents_of(path);
  try {
    return tokens_of(square_image(
        decode_image(
            {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}),
        size));
  } catch (const Error& error) {
    throw Error("cannot read " + path + ": " + error.what());
  }
}

at::Tensor validation_rows(const Task& task, int64_t index) {
  return task.evaluation_batch(Split::kValidation, index).tokens;
}

std::vector<at::Tensor> validation_tokens(const Task& task, int64_t batch,
                                          std::vector<int64_t> indices) {
  const int64_t last = task.evaluation_batches(Split::kValidation) - 1;
  const int64_t count = last * batch + validation_rows(task, last).size(0);
  if (indices.empty()) {
    indices.resize(static_cast<size_t>(std::min(kImages, count)));
    std::iota(indices.begin(), indices.end(), 0);
  }
  std::vector<at::Tensor> images;
  for (const int64_t index : indices) {
    require(index < count, "--images: this validation split has images 0 to ",
            count - 1, ", got ", index);
    images.push_back(validation_rows(task, index / batch)[index % batch]);
  }
  return images;
}

// [images, length]
at::Tensor originals(const CompleteImagesOptions& options, Config config) {
  if (options.files.empty()) {
    if (!options.data.empty()) config.task.data = options.data;
    const auto task = open_task(config, &stop_requested());
    return at::stack(
        validation_tokens(*task, config.train.batch, options.images));
  }
  std::vector<at::Tensor> images;
  for (const auto& file : options.files) {
    images.push_back(file_tokens(file, config.task.image_size));
  }
  return at::stack(images);
}

std::vector<std::vector<Image>> grid_rows(const at::Tensor& images,
                                          const at::Tensor& completed,
                                          int64_t given, int64_t size) {
  const int64_t samples = completed.size(0) / images.size(0);
  std::vector<std::vector<Image>> rows;
  for (int64_t i = 0; i < images.size(0); ++i) {
    auto half = images[i].clone();
    half.narrow(0, given, half.numel() - given).fill_(kGrey);
    std::vector<Image> row{image_of(half, size)};
    for (int64_t sample = 0; sample < samples; ++sample) {
      row.push_back(image_of(completed[i * samples + sample], size));
    }
    row.push_back(image_of(images[i], size));
    rows.push_back(std::move(row));
  }
  return rows;
}

// All images and samples at once, as a batch.
at::Tensor completions(const LanguageModel& model, const at::Tensor& given,
                       int64_t length, const CompletionConfig& config) {
  const int64_t wanted = length - given.size(1);
  const Stopwatch watch;
  Stopwatch since;
  Report report(/*json=*/false);
  const auto go_on = [&](int64_t made) {
    if (made > 0 && since.seconds() > 1) {
      since = Stopwatch();
      const double rate = double(made) / watch.seconds();
      char text[96];
      std::snprintf(text, sizeof(text), "%lld of %lld sub-pixels, %.0f s left",
                    static_cast<long long>(made),
                    static_cast<long long>(wanted),
                    double(wanted - made) / rate);
      report.progress(text);
    }
    return true;
  };
  PrefillScreen screen("the given halves");
  try {
    return complete(model, given, length, config, go_on, screen.watch());
  } catch (const Interrupted&) {
    report.note("stopped before the images were complete");
    throw;
  }
}

// completion.png, or completion-2.png and so on: the first that is not there.
std::string free_name(const std::string& wanted) {
  const std::filesystem::path path(wanted);
  std::string name = wanted;
  for (int n = 2; std::filesystem::exists(name); ++n) {
    name = path.stem().string() + "-" + std::to_string(n) +
           path.extension().string();
  }
  return name;
}

std::string name_for(const CompleteImagesOptions& options) {
  return options.out.value_or(free_name(kDefaultOut));
}

// Before hours are spent on what cannot be written.
void require_writable(const std::string& path, int64_t size) {
  const auto black = at::zeros({size * size * 3}, at::kLong);
  const std::string beside = path + ".part";
  write_png(beside, image_of(black, size));
  std::filesystem::remove(beside);
}

}  // namespace

void CompleteImagesOptions::add_to(CLI::App& command) {
  const std::string group = "Images";
  auto* indices =
      command
          .add_option("--images", images,
                      "images of the validation split to complete [0,1,2,3]")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->check(whole_number(0, kMaxLength))
          ->type_name("N,...")
          ->group(group);
  command
      .add_option("--image-file", files,
                  "a PNG or JPEG to complete; may be given several times")
      ->allow_extra_args(false)
      ->type_name("FILE")
      ->excludes(indices)
      ->group(group);
  command
      .add_option("--data", data, "where the validation split is [the run's]")
      ->type_name("PATH")
      ->group(group);
  command.add_option("--samples", samples, "completions of each image")
      ->check(whole_number(1, 64))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--png,--out", out,
                  "the grid to write, in place of a file of that name "
                  "[completion.png, where there is one completion-2.png, ...]")
      ->check(not_empty())
      ->type_name("FILE")
      ->group(group);
}

void complete_images(const CompleteImagesOptions& options,
                     const CompletionConfig& config,
                     const LanguageModel& model) {
  const int64_t size = model.config().task.image_size;
  require_writable(name_for(options), size);
  const auto images = originals(options, model.config());
  const int64_t given = size / 2 * size * 3;  // the upper half
  const auto completed = completions(
      model, images.narrow(1, 0, given).repeat_interleave(options.samples, 0),
      images.size(1), config);
  const int64_t scale = std::max<int64_t>(1, kGridPixels / size);
  const std::string out = name_for(options);  // others may have come
  write_png(out, image_grid(grid_rows(images, completed, given, size), scale));
  print("half, " + std::to_string(options.samples) +
        (options.samples == 1 ? " completion" : " completions") +
        ", original: " + out + "\n");
}

}  // namespace reformer::cli
