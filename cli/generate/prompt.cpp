#include "cli/generate/prompt.h"

#include <algorithm>
#include <charconv>

#include "reformer/base/errors.h"
#include "reformer/data/byte_file.h"

namespace reformer::cli {
namespace {

constexpr int64_t kBytes = 256;

int64_t number_in(const std::string& word, int64_t vocabulary) {
  int64_t token = -1;
  const char* end = word.data() + word.size();
  const auto [stop, fault] = std::from_chars(word.data(), end, token);
  require(
      fault == std::errc() && stop == end && token >= 0 && token < vocabulary,
      "the prompt: numbers from 0 to ", vocabulary - 1,
      ", this model's tokens, are required, got '", word, "'");
  return token;
}

}  // namespace

TokenWriting::TokenWriting(const Config& config,
                           const std::shared_ptr<const Tokenizer>& tokenizer)
    : bytes_(config.task.name == TaskKind::kText ||
             config.task.name == TaskKind::kImages),
      byte_offset_(config.task.byte_offset),
      vocabulary_(config.model.vocabulary) {
  if (tokenizer != nullptr) pieces_.emplace(tokenizer);
}

std::vector<int64_t> TokenWriting::tokens_of(const std::string& prompt) const {
  if (pieces_) return pieces_->encode(prompt);
  std::vector<int64_t> tokens;
  if (bytes_) {
    for (const char c : prompt) {
      tokens.push_back(static_cast<uint8_t>(c) + byte_offset_);
    }
    return tokens;
  }
  std::string words = prompt;
  std::replace(words.begin(), words.end(), ',', ' ');
  std::istringstream rest(words);
  for (std::string word; rest >> word;) {
    tokens.push_back(number_in(word, vocabulary_));
  }
  return tokens;
}

std::string TokenWriting::written(int64_t token) const {
  if (!bytes_) return std::to_string(token) + " ";
  if (token < byte_offset_) return "";
  return std::string(1, static_cast<char>(token - byte_offset_));
}

int64_t TokenWriting::count() const {
  return bytes_ && !pieces_ ? std::min(vocabulary_, kBytes + byte_offset_)
                            : vocabulary_;
}

std::string contents_of(const std::string& path) {
  const ByteFile file(path);
  std::string bytes(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
  return bytes;
}

}  // namespace reformer::cli
