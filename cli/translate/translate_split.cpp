#include "cli/translate/translate_split.h"

#include <optional>

#include "cli/process/stop_signal.h"
#include "cli/translate/line_translator.h"
#include "reformer/distributed/dealt_lines.h"

namespace reformer::cli {

std::string TranslatedSplit::line() const {
  return bleu_line(bleu, {}, /*digits=*/2);
}

TranslatedSplit translate_split(const EncoderDecoder& model, const Task& task,
                                Split split, const TranslatorConfig& config,
                                const SplitProgress& progress, World* world) {
  Lines all;
  Lines references;
  for (const auto& [source, target] : task.lines(split)) {
    all.push_back(source);
    references.push_back(target);
  }
  const Lines sources = dealt_lines(all, world);
  const LineTranslator translator(model, task.tokenizer(), config);
  int64_t done = 0;
  auto busy = std::make_optional<World::Busy>(world);
  const Lines own = translator
                        .translate(
                            sources,
                            [&](std::size_t, const std::vector<Translation>&) {
                              progress(++done, std::ssize(sources));
                            },
                            &stop_requested())
                        .texts;
  busy.reset();
  TranslatedSplit found;
  found.hypotheses = gathered_lines(own, all.size(), world);
  found.bleu = corpus_bleu(found.hypotheses, references);
  return found;
}

}  // namespace reformer::cli
