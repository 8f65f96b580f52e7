// Text to tokens and back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reformer {

// Tokens are 0 to vocabulary_size() - 1. Everything is const and may be called
// from several threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual int64_t vocabulary_size() const = 0;

  // Of one line, without a token of its beginning or end.
  virtual std::vector<int64_t> encode(std::string_view line) const = 0;

  // The line; tokens that stand for no text (its end) add nothing. Throws Error
  // for what is no token.
  virtual std::string decode(std::span<const int64_t> tokens) const = 0;

  // How a token is written in the tokenizer itself ("▁Haus", "<0x0A>"), and the
  // bytes that it stands for within a line (" Haus", "\n"): none for a control
  // token. Throw Error for what is no token.
  virtual std::string piece(int64_t token) const = 0;
  virtual std::string bytes_of(int64_t token) const = 0;

  // The token of a piece, -1 where there is none.
  virtual int64_t token_of(std::string_view piece) const = 0;

  // -1: it has none.
  virtual int64_t unknown_token() const = 0;
  virtual int64_t begin_token() const = 0;
  virtual int64_t end_token() const = 0;

  // What it can be made from again (parse_tokenizer); empty where that is the
  // config alone.
  virtual const std::string& file() const = 0;
};

// A SentencePiece model (.model): of the file, or of its bytes, `name` for
// messages. Throws Error for what is none, and where the library was built
// without SentencePiece.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& path);
std::shared_ptr<const Tokenizer> parse_tokenizer(const std::string& bytes,
                                                 const std::string& name);

enum class PieceKind { kBpe, kUnigram };

struct TokenizerTraining {
  PieceKind kind = PieceKind::kBpe;
  int64_t vocabulary = 32000;
  // Whether a text that is too small for so many pieces gets as many as it has,
  // and is no error.
  bool or_fewer = false;
};

// Puts the next line into `line`, false when there are no more. What it throws
// ends the training.
using NextLine = std::function<bool(std::string& line)>;

// The bytes of a new .model: the same for the same lines and settings on every
// machine. Every byte can be written with it, and every line comes back as it
// was (but U+2581, which becomes a space): no normalization, characters without
// a piece in bytes. Pieces 0, 1 and 2 are unknown, begin and end. Lines beyond
// 4,192 bytes are left out. Throws Error for a vocabulary that is too small for
// the characters there are or, unless or_fewer, too large for the text.
std::string train_tokenizer(const NextLine& next,
                            const TokenizerTraining& training);

}  // namespace reformer
