#include "cli/translate/translate_split.h"

#include <optional>
#include <string>
#include <vector>

#include "cli/process/stop_signal.h"
#include "cli/translate/line_translator.h"

namespace reformer::cli {

std::string TranslatedSplit::line() const {
  return bleu_line(bleu, {}, /*digits=*/2);
}

namespace {

using Lines = std::vector<std::string>;

// "2 5:hello3:abc", since a line may hold any byte.
std::string packed(const Lines& lines) {
  std::string text = std::to_string(lines.size()) + ' ';
  for (const auto& line : lines) {
    text += std::to_string(line.size()) + ':' + line;
  }
  return text;
}

Lines unpacked(const std::string& text) {
  Lines lines;
  for (size_t at = text.find(' ') + 1; at < text.size();) {
    const size_t begin = text.find(':', at) + 1;
    const size_t size = std::stoull(text.substr(at, begin - at));
    lines.push_back(text.substr(begin, size));
    at = begin + size;
  }
  return lines;
}

// Which of `count` lines are rank `rank`'s: each R-th, since lines that follow
// one another are often alike.
Lines of_rank(const Lines& lines, const World* world) {
  if (world == nullptr) return lines;
  const auto& ranks = world->ranks();
  Lines own;
  for (auto i = size_t(ranks.rank); i < lines.size(); i += size_t(ranks.size)) {
    own.push_back(lines[i]);
  }
  return own;
}

// The way back: `count` lines of all ranks in their order.
Lines of_all_ranks(const Lines& own, size_t count, World* world) {
  if (world == nullptr) return own;
  std::vector<Lines> parts;
  for (const auto& text : world->control().gathered(packed(own))) {
    parts.push_back(unpacked(text));
  }
  Lines lines;
  for (size_t i = 0; i < count; ++i) {
    lines.push_back(parts[i % parts.size()].at(i / parts.size()));
  }
  return lines;
}

}  // namespace

TranslatedSplit translate_split(const EncoderDecoder& model, const Task& task,
                                Split split, const TranslatorConfig& config,
                                const SplitProgress& progress, World* world) {
  Lines all;
  Lines references;
  for (const auto& [source, target] : task.lines(split)) {
    all.push_back(source);
    references.push_back(target);
  }
  const Lines sources = of_rank(all, world);
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
  found.hypotheses = of_all_ranks(own, all.size(), world);
  found.bleu = corpus_bleu(found.hypotheses, references);
  return found;
}

}  // namespace reformer::cli
