#include "cli/generate/prompt.h"

#include <algorithm>
#include <charconv>

#include "reformer/base/errors.h"
#include "reformer/data/byte_file.h"

namespace reformer::cli {
namespace {

constexpr int64_t kBytes = 256;

int64_t number_in(const std::string& word, int64_t vocabulary) {
  int64_t symbol = -1;
  const char* end = word.data() + word.size();
  const auto [stop, fault] = std::from_chars(word.data(), end, symbol);
  require(
      fault == std::errc() && stop == end && symbol >= 0 && symbol < vocabulary,
      "the prompt: numbers from 0 to ", vocabulary - 1,
      ", this model's symbols, are required, got '", word, "'");
  return symbol;
}

}  // namespace

SymbolWriting::SymbolWriting(const Config& config)
    : bytes_(config.task.name == "text" || config.task.name == "images"),
      vocabulary_(config.model.vocabulary) {}

std::vector<int64_t> SymbolWriting::symbols_of(
    const std::string& prompt) const {
  std::vector<int64_t> symbols;
  if (bytes_) {
    for (const char c : prompt) symbols.push_back(static_cast<uint8_t>(c));
    return symbols;
  }
  std::string words = prompt;
  std::replace(words.begin(), words.end(), ',', ' ');
  std::istringstream rest(words);
  for (std::string word; rest >> word;) {
    symbols.push_back(number_in(word, vocabulary_));
  }
  return symbols;
}

std::string SymbolWriting::written(int64_t symbol) const {
  return bytes_ ? std::string(1, static_cast<char>(symbol))
                : std::to_string(symbol) + " ";
}

int64_t SymbolWriting::count() const {
  return bytes_ ? std::min(vocabulary_, kBytes) : vocabulary_;
}

std::string contents_of(const std::string& path) {
  const ByteFile file(path);
  std::string bytes(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
  return bytes;
}

}  // namespace reformer::cli
