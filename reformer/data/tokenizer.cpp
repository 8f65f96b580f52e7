// SentencePiece (Kudo and Richardson 2018) behind our own interface.
#include "reformer/data/tokenizer.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>

#include "reformer/base/errors.h"
#include "reformer/data/byte_file.h"

namespace reformer {
namespace {

// A real one has a megabyte or two.
constexpr int64_t kLargestFile = 64 << 20;
constexpr int64_t kLongestPiece = 4096;  // bytes
constexpr int64_t kMostPieces = 1 << 24;
constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

// "src/trainer_interface.cc(660) [(a) == (b)] Vocabulary size too high (9).":
// what is behind the place in the library's source.
std::string reason_of(const sentencepiece::util::Status& status) {
  const std::string text = status.ToString();
  const size_t place = text.find(".cc(");
  const size_t end = text.find("] ", place);
  if (place != std::string::npos && end != std::string::npos) {
    return text.substr(end + 2);
  }
  return text;
}

std::string with_spaces(std::string_view piece) {
  std::string text;
  while (!piece.empty()) {
    const size_t at = std::min(piece.find(kSpace), piece.size());
    text += piece.substr(0, at);
    piece.remove_prefix(at);
    if (piece.empty()) break;
    text += ' ';
    piece.remove_prefix(kSpace.size());
  }
  return text;
}

// Of "<0x0A>"; nothing where it is no such piece.
std::optional<char> byte_of(const std::string& piece) {
  int byte = 0;
  const char* digits = piece.data() + 3;
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>' ||
      std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
    return {};
  }
  return static_cast<char>(byte);
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::string& bytes, const std::string& name)
      : file_(bytes) {
    const auto fault = load();
    require(!fault, name, ": a SentencePiece model is required (",
            fault.value_or(""), ")");
    check_pieces(name);
  }

  int64_t vocabulary_size() const override { return processor_.GetPieceSize(); }

  std::vector<int64_t> encode(std::string_view line) const override {
    std::vector<int> ids;
    const auto status = processor_.Encode({line.data(), line.size()}, &ids);
    require(status.ok(),
            "tokenizer: a line could not be encoded: ", reason_of(status));
    return {ids.begin(), ids.end()};
  }

  std::string decode(std::span<const int64_t> tokens) const override {
    std::vector<int> ids;
    for (const int64_t token : tokens) ids.push_back(id_of(token));
    std::string line;
    const auto status = processor_.Decode(ids, &line);
    require(status.ok(),
            "tokenizer: tokens could not be decoded: ", reason_of(status));
    return line;
  }

  std::string piece(int64_t token) const override {
    return processor_.IdToPiece(id_of(token));
  }

  std::string bytes_of(int64_t token) const override {
    const int id = id_of(token);
    if (processor_.IsControl(id)) return "";
    const std::string& piece = processor_.IdToPiece(id);
    if (processor_.IsByte(id)) return std::string(1, *byte_of(piece));
    if (processor_.IsUnknown(id)) return processor_.DecodeIds({id});
    return with_spaces(piece);
  }

  int64_t token_of(std::string_view piece) const override {
    const int id = processor_.PieceToId({piece.data(), piece.size()});
    return id >= 0 && id < processor_.GetPieceSize() &&
                   processor_.IdToPiece(id) == piece
               ? id
               : -1;
  }

  int64_t unknown_token() const override { return processor_.unk_id(); }
  int64_t begin_token() const override { return processor_.bos_id(); }
  int64_t end_token() const override { return processor_.eos_id(); }
  const std::string& file() const override { return file_; }

 private:
  // What is wrong, if anything. The library says it by a status, its trie of
  // all pieces by exceptions (a piece that begins with a zero byte).
  std::optional<std::string> load() {
    try {
      const auto status = processor_.LoadFromSerializedProto(file_);
      if (status.ok()) return {};
      return reason_of(status);
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  // A stranger's file: what is relied upon later is looked at once.
  void check_pieces(const std::string& name) {
    const int count = processor_.GetPieceSize();
    require(count >= 2 && count <= kMostPieces, name, ": a tokenizer of 2 to ",
            kMostPieces, " pieces is required, this one has ", count);
    for (int id = 0; id < count; ++id) {
      const std::string& piece = processor_.IdToPiece(id);
      require(std::ssize(piece) <= kLongestPiece, name, ": pieces of at most ",
              kLongestPiece, " bytes are required, number ", id, " has ",
              piece.size());
      // The trie would take it for what is before.
      require(piece.find('\0') == std::string::npos, name,
              ": pieces without zero bytes are required, number ", id,
              " has one");
      require(!processor_.IsByte(id) || byte_of(piece).has_value(), name,
              ": the byte piece number ", id, " is not of the form <0x0A>");
    }
    for (const int id :
         {processor_.unk_id(), processor_.bos_id(), processor_.eos_id()}) {
      require(id >= -1 && id < count, name, ": a control piece is number ", id,
              " of ", count);
    }
  }

  int id_of(int64_t token) const {
    require(token >= 0 && token < vocabulary_size(),
            "tokenizer: tokens from 0 to ", vocabulary_size() - 1,
            " are required, got ", token);
    return static_cast<int>(token);
  }

  std::string file_;
  sentencepiece::SentencePieceProcessor processor_;
};

// What a callback throws must not pass through the library: it is kept, ends
// the lines, and is thrown when the library has returned.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const NextLine& next) : next_(next) { Next(); }

  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }
  void Next() override {
    try {
      done_ = !next_(line_);
    } catch (...) {
      done_ = true;
      thrown_ = std::current_exception();
    }
    read_ += !done_;
  }

  int64_t read() const { return read_; }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  const NextLine& next_;
  std::string line_;
  bool done_ = false;
  int64_t read_ = 0;
  std::exception_ptr thrown_;
};

}  // namespace

std::shared_ptr<const Tokenizer> parse_tokenizer(const std::string& bytes,
                                                 const std::string& name) {
  return std::make_shared<SentencePieceTokenizer>(bytes, name);
}

std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& path) {
  const ByteFile file(path, kLargestFile);
  require(file.size() <= kLargestFile, path,
          ": a SentencePiece model of at most ", kLargestFile,
          " bytes is required, got ", file.size());
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  file.read(0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
  return parse_tokenizer(bytes, path);
}

std::string train_tokenizer(const NextLine& next,
                            const TokenizerTraining& training) {
  Lines lines(next);
  lines.rethrow();
  require(!lines.done(),
          "tokenizer: lines to learn from are required, got none");
  std::string bytes;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      {{"model_type", training.kind == PieceKind::kBpe ? "bpe" : "unigram"},
       {"vocab_size", std::to_string(training.vocabulary)},
       {"hard_vocab_limit", training.or_fewer ? "false" : "true"},
       {"normalization_rule_name", "identity"},
       {"remove_extra_whitespaces", "false"},
       {"byte_fallback", "true"},
       // The sums of unigram's threads are added in their order: as many
       // everywhere give the same pieces everywhere.
       {"num_threads", "4"},
       {"minloglevel", "3"}},
      &lines, &bytes);
  lines.rethrow();
  require(status.ok(), "tokenizer: ", training.vocabulary, " pieces of ",
          lines.read(), " lines could not be made: ", reason_of(status));
  return bytes;
}

}  // namespace reformer
