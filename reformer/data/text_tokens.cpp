#include "reformer/data/text_tokens.h"

#include "reformer/base/errors.h"

namespace reformer {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

int64_t end_of_line_in(const Tokenizer& tokenizer) {
  for (const char* piece : {"\n", "<0x0A>"}) {
    const int64_t token = tokenizer.token_of(piece);
    if (token >= 0) return token;
  }
  const int64_t end = tokenizer.end_token();
  require(end >= 0,
          "task.tokenizer: a tokenizer with a piece for the end of a line is "
          "required: \\n, <0x0A> or an end token");
  return end;
}

bool adds_space_in(const Tokenizer& tokenizer) {
  const auto tokens = tokenizer.encode("a");
  return !tokens.empty() && tokenizer.piece(tokens[0]).starts_with(kSpace);
}

}  // namespace

TextTokens::TextTokens(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)),
      end_of_line_(end_of_line_in(*tokenizer_)),
      adds_space_(adds_space_in(*tokenizer_)) {}

std::vector<int64_t> TextTokens::encode(std::string_view text) const {
  std::vector<int64_t> tokens;
  while (true) {
    const size_t end = text.find('\n');
    const auto line = tokenizer_->encode(text.substr(0, end));
    tokens.insert(tokens.end(), line.begin(), line.end());
    if (end == std::string_view::npos) return tokens;
    tokens.push_back(end_of_line_);
    text.remove_prefix(end + 1);
  }
}

std::string TextTokens::decode(std::span<const int64_t> tokens) const {
  std::string text;
  size_t begin = 0;
  for (size_t i = 0; i <= tokens.size(); ++i) {
    if (i < tokens.size() && tokens[i] != end_of_line_) continue;
    text += tokenizer_->decode(tokens.subspan(begin, i - begin));
    if (i < tokens.size()) text += '\n';
    begin = i + 1;
  }
  return text;
}

std::string TokenWriter::add(int64_t token) {
  if (token == tokens_->end_of_line()) {
    at_line_begin_ = true;
    return "\n";
  }
  std::string bytes = tokens_->tokenizer().bytes_of(token);
  if (bytes.empty()) return bytes;  // a control token
  if (at_line_begin_ && tokens_->adds_space() && bytes.starts_with(' ')) {
    bytes.erase(0, 1);
  }
  at_line_begin_ = false;
  return bytes;
}

}  // namespace reformer
