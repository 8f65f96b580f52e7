#include "cli/generate/continue_texts.h"

#include <ATen/ops/zeros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/bench/timing.h"
#include "cli/generate/prompt.h"
#include "cli/options/config_options.h"
#include "cli/process/stop_signal.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/generate/decoder.h"

namespace reformer::cli {
namespace {

constexpr int64_t kDefaultLength = 256;

// The last token is never read: a position for each of the others, and one
// for the start token.
int64_t checked_length(int64_t asked, const LanguageModel& model,
                       int64_t prompt) {
  const int64_t limit = model.positions().limit();
  const int64_t wanted = asked > 0 ? asked : 1;
  require(prompt <= limit - wanted, "this model has ", limit,
          " positions: a prompt of ", prompt, " tokens, the longest, leaves ",
          std::max<int64_t>(0, limit - prompt), " to generate, not ", wanted,
          "; give a shorter prompt or a smaller --length");
  return asked > 0 ? asked : std::min(kDefaultLength, limit - prompt);
}

// What was drawn: printed at once, or kept while there are several texts.
class Continuations {
 public:
  Continuations(const TokenWriting& writing, int64_t count, int64_t length)
      : writing_(writing),
        length_(length),
        texts_(static_cast<size_t>(count)),
        report_(/*json=*/false) {}

  void add(const at::Tensor& tokens) {
    const auto* token = tokens.const_data_ptr<int64_t>();
    if (texts_.size() == 1) return print(writing_.written(*token));
    for (auto& text : texts_) text += writing_.written(*token++);
    ++made_;
    if (since_.seconds() < 1) return;
    since_ = Stopwatch();
    report_.progress(std::to_string(made_) + " of " + std::to_string(length_) +
                     " tokens of " + std::to_string(texts_.size()) + " texts");
  }

  void end() {
    if (texts_.size() == 1) {
      if (isatty(STDOUT_FILENO) == 1) print("\n");
      return;
    }
    for (size_t i = 0; i < texts_.size(); ++i) {
      report_.text("--- " + std::to_string(i + 1) + " of " +
                   std::to_string(texts_.size()) + "\n" + texts_[i] + "\n");
    }
  }

 private:
  const TokenWriting& writing_;
  const int64_t length_;
  std::vector<std::string> texts_;
  int64_t made_ = 0;
  Stopwatch since_;
  Report report_;
};

struct Speed {
  double reading_s;
  double making_s;
  int64_t made;  // of each text
};

void report(const Prompts& prompts, const Speed& speed, bool stopped) {
  const int64_t made = speed.made * prompts.count();
  const std::string texts =
      prompts.count() == 1
          ? "prompt of "
          : counted(prompts.count(), "text") + "; prompts of up to ";
  std::fprintf(
      stderr,
      "%s%lld tokens in %.2f s, %.1f tokens/s; %s%lld read in "
      "%.2f s\n",
      stopped ? "stopped: " : "", static_cast<long long>(made), speed.making_s,
      speed.making_s > 0 ? double(made) / speed.making_s : 0, texts.c_str(),
      static_cast<long long>(prompts.longest()), speed.reading_s);
}

}  // namespace

void ContinueTextsOptions::add_to(CLI::App& command) {
  auto* texts =
      command
          .add_option("--prompt", prompts,
                      "what to continue; of duplication and recall: numbers; "
                      "several are continued together")
          ->allow_extra_args(false)
          ->type_name("TEXT");
  command
      .add_option("--prompt-file", files,
                  "a file that holds what to continue; -: standard input; "
                  "several are continued together")
      ->allow_extra_args(false)
      ->type_name("FILE")
      ->excludes(texts);
  command
      .add_option("--length", length,
                  "tokens to generate [" + std::to_string(kDefaultLength) +
                      ", or as many as there are positions]")
      ->check(whole_number(1, kMaxLength))
      ->type_name("N");
}

bool ContinueTextsOptions::given() const {
  return !prompts.empty() || !files.empty() || length > 0;
}

Prompts prompts_of(const ContinueTextsOptions& options, const Config& config) {
  const TokenWriting writing(config);
  require(std::count(options.files.begin(), options.files.end(), "-") <= 1,
          "--prompt-file: standard input can be read only once");
  std::vector<std::vector<int64_t>> rows;
  for (const auto& text : options.prompts) {
    rows.push_back(writing.tokens_of(text));
  }
  for (const auto& file : options.files) {
    rows.push_back(writing.tokens_of(contents_of(file)));
  }
  if (rows.empty()) rows.emplace_back();
  Prompts prompts;
  int64_t longest = 0;
  for (const auto& row : rows) {
    prompts.lengths.push_back(static_cast<int64_t>(row.size()));
    longest = std::max(longest, prompts.lengths.back());
  }
  prompts.tokens =
      at::zeros({static_cast<int64_t>(rows.size()), longest}, at::kLong);
  auto* to = prompts.tokens.mutable_data_ptr<int64_t>();
  for (const auto& row : rows) {
    std::copy(row.begin(), row.end(), to);
    to += longest;
  }
  return prompts;
}

void continue_texts(const Prompts& prompts, int64_t asked,
                    const SamplerConfig& sampling, int64_t rounds,
                    const LanguageModel& model) {
  const auto& stop = stop_requested();
  const TokenWriting writing(model.config());
  const int64_t length = checked_length(asked, model, prompts.longest());
  Sampler sampler(sampling);
  Decoder decoder(model, prompts.count(), rounds);
  Continuations texts(writing, prompts.count(), length);
  Speed speed{};
  const Stopwatch reading;
  auto logits = decoder.prefill(prompts.tokens, prompts.lengths);
  synchronize(model.placement().device);
  speed.reading_s = reading.seconds();
  const Stopwatch making;
  while (!stop) {
    const auto tokens = sampler.draw(logits.narrow(1, 0, writing.count()));
    texts.add(tokens);
    if (++speed.made == length) break;
    logits = decoder.step(tokens);
  }
  speed.making_s = making.seconds();
  texts.end();
  report(prompts, speed, stop);
}

}  // namespace reformer::cli
