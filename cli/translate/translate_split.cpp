#include "cli/translate/translate_split.h"

#include "cli/process/stop_signal.h"
#include "cli/translate/line_translator.h"

namespace reformer::cli {

std::string TranslatedSplit::line() const {
  return bleu_line(bleu, {}, /*digits=*/2);
}

TranslatedSplit translate_split(const EncoderDecoder& model, const Task& task,
                                Split split, const TranslatorConfig& config,
                                const SplitProgress& progress) {
  std::vector<std::string> sources;
  std::vector<std::string> references;
  for (const auto& [source, target] : task.lines(split)) {
    sources.push_back(source);
    references.push_back(target);
  }
  const LineTranslator translator(model, task.tokenizer(), config);
  int64_t done = 0;
  TranslatedSplit found;
  found.hypotheses = translator
                         .translate(
                             sources,
                             [&](std::size_t, const std::vector<Translation>&) {
                               progress(++done, std::ssize(sources));
                             },
                             &stop_requested())
                         .texts;
  found.bleu = corpus_bleu(found.hypotheses, references);
  return found;
}

}  // namespace reformer::cli
