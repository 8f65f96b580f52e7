#include "cli/translate/translation_options.h"

#include "cli/options/sampler_options.h"
#include "reformer/base/errors.h"
#include "reformer/kernels/top_tokens.h"

namespace reformer::cli {
namespace {

void add_search_options(CLI::App& command, TranslationOptions& options) {
  command
      .add_option("--beam", options.beam,
                  "hypotheses of a sentence that are followed; 1: greedy")
      ->check(whole_number(1, kernels::kMaxTopTokens - 1))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--length-penalty", options.length_penalty,
                  "A of ((5 + n) / 6)^A, which divides the log-probability of "
                  "n tokens; more: longer translations")
      ->check(number(-100, 100))
      ->type_name("A")
      ->capture_default_str();
  command
      .add_option("--n-best", options.n_best,
                  "the best N of the beam, a line each: the source's line, "
                  "score, text, with tabs between")
      ->check(whole_number(1, kernels::kMaxTopTokens - 1))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--batch", options.batch,
                  "sentences at a time; 0: 32 on a CPU, 128 on a GPU")
      ->check(whole_number(0, 8191))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--longer", options.longer,
                  "tokens that a translation may have more than its source")
      ->check(whole_number(0, kMaxLength))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--rounds", options.rounds,
                  "hash rounds, free to differ from training's; 0: the same")
      ->check(whole_number(0, 1024))
      ->type_name("N")
      ->capture_default_str();
}

void add_sampling_options(CLI::App& command, TranslationOptions& options) {
  auto* sample = command.add_flag("--sample", options.sample,
                                  "draw tokens instead of searching");
  for (auto* option : add_sampler_options(command, options.sampler)) {
    option->needs(sample);
  }
}

}  // namespace

int64_t translation_batch(c10::Device device) {
  return device.is_cpu() ? 32 : 128;
}

void TranslationOptions::add_to(CLI::App& command) {
  add_search_options(command, *this);
  add_sampling_options(command, *this);
}

TranslatorConfig TranslationOptions::config(c10::Device device) const {
  require(!sample || n_best == 1,
          "--n-best: with --sample there is one translation, not ", n_best);
  require(sample || n_best <= beam, "--n-best: at most the beam, ", beam,
          ", is possible, got ", n_best);
  TranslatorConfig config;
  config.beam = beam;
  config.length_penalty = length_penalty;
  config.n_best = n_best;
  config.batch = batch > 0 ? batch : translation_batch(device);
  config.more = longer;
  config.rounds = rounds;
  if (sample) config.sampler = sampler;
  return config;
}

}  // namespace reformer::cli
