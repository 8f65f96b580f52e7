// A split of a translation task, translated and scored.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reformer/distributed/world.h"
#include "reformer/generate/translator.h"
#include "reformer/score/bleu.h"
#include "reformer/tasks/task.h"

namespace reformer::cli {

// Cased, detokenised, 13a: what sacreBLEU prints by default.
struct TranslatedSplit {
  Bleu bleu;
  std::vector<std::string> hypotheses;  // a line each

  std::string signature() const { return bleu_signature({}); }
  std::string line() const;  // as sacreBLEU prints it
};

// Told how many lines of how many are translated.
using SplitProgress = std::function<void(int64_t done, int64_t all)>;

// The task has lines and a tokenizer. config.end_token is the tokenizer's.
// Throws Interrupted where `progress` does. The ranks of a `world` share the
// lines, and all get all translations; `progress` is of this rank's lines.
TranslatedSplit translate_split(const EncoderDecoder& model, const Task& task,
                                Split split, const TranslatorConfig& config,
                                const SplitProgress& progress,
                                World* world = nullptr);

}  // namespace reformer::cli
