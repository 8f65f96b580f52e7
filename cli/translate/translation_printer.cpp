#include "cli/translate/translation_printer.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/screen/output.h"

namespace reformer::cli {
namespace {

// A translation is one line, whatever the model has written.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\r', ' ');
  return text;
}

std::string json_line(int64_t line, const std::string& source,
                      const std::vector<Translation>& translations) {
  nlohmann::ordered_json json;
  json["line"] = line + 1;
  json["source"] = source;
  json["translations"] = nlohmann::ordered_json::array();
  for (const auto& translation : translations) {
    json["translations"].push_back(
        {{"text", translation.text},
         {"score", translation.score},
         {"log_probability", translation.log_probability},
         {"tokens", translation.tokens}});
  }
  // U+FFFD stands for bytes that are no UTF-8.
  return json.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace

std::string TranslationPrinter::rendered(
    int64_t line, const std::string& source,
    const std::vector<Translation>& translations) const {
  if (style_.json) return json_line(line, source, translations);
  if (!style_.several) {
    return (translations.empty() ? "" : one_line(translations[0].text)) + "\n";
  }
  std::string text;
  for (const auto& translation : translations) {
    char numbers[64];
    std::snprintf(numbers, sizeof(numbers), "%lld\t%.4f\t",
                  static_cast<long long>(line) + 1, translation.score);
    text += numbers + one_line(translation.text) + "\n";
  }
  return text;
}

void TranslationPrinter::add(int64_t line, const std::string& source,
                             const std::vector<Translation>& translations) {
  waiting_[line] = rendered(line, source, translations);
  std::string known;
  while (!waiting_.empty() && waiting_.begin()->first == next_) {
    known += waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    ++next_;
  }
  if (!known.empty()) print(known);
}

}  // namespace reformer::cli
