#include "reformer/data/tokenized_text.h"

#include <algorithm>
#include <sstream>

#include "reformer/base/errors.h"
#include "reformer/base/hex.h"
#include "reformer/base/parallel.h"
#include "reformer/base/sha256.h"
#include "reformer/base/utf8.h"

namespace reformer {
namespace {

constexpr int64_t kBlock = 4 << 20;        // bytes that are tokenized at a time
constexpr int64_t kLongestLine = 1 << 20;  // of a longer one in pieces
constexpr int64_t kNearLineEnd = 4 << 10;

bool continues_character(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// Cuts a text, which comes in order, into lines and tokenizes them.
class LineTokenizer {
 public:
  LineTokenizer(const Bytes& text, const TextTokens& tokens,
                std::vector<int64_t> cuts, const AppendPayload& append)
      : text_(text),
        tokens_(tokens),
        cuts_(std::move(cuts)),
        append_(append),
        parts_(1) {}

  // `told` is called with the bytes that are done.
  template <class Told>
  void run(const Told& told) {
    std::vector<uint8_t> block;
    while (at_ < text_.size()) {
      told(at_);
      block.resize(size_t(std::min(kBlock, text_.size() - at_)));
      text_.read(at_, block);
      const bool last = at_ + std::ssize(block) == text_.size();
      add_block({reinterpret_cast<const char*>(block.data()), block.size()},
                last);
    }
    while (parts_.size() <= cuts_.size()) begin_part();
  }

  // What is kept beside the tokens.
  std::string summary() const {
    std::ostringstream text;
    text << unknown_ << " " << invalid_;
    for (const auto& part : parts_) {
      text << " " << part.begin << " " << part.size << " " << part.bytes;
    }
    return text.str();
  }

 private:
  struct Piece {
    std::string_view text;  // with the end of its line, where that is in it
    int64_t place;          // in the whole text
    std::vector<int64_t> tokens = {};
    bool valid = true;
  };

  // The lines of a block, but for the last where it may go on behind it.
  void add_block(std::string_view block, bool last) {
    std::vector<Piece> pieces;
    size_t done = 0;
    while (done < block.size()) {
      const size_t size = piece_size(block.substr(done), done, last);
      if (size == 0) break;
      pieces.push_back({block.substr(done, size), at_ + int64_t(done)});
      done += size;
    }
    parallel_tasks(std::ssize(pieces), [&](int64_t i) {
      auto& piece = pieces[size_t(i)];
      piece.tokens = tokens_.encode(piece.text);
      piece.valid = is_utf8(piece.text);
    });
    for (const auto& piece : pieces) add(piece);
    at_ += int64_t(done);
  }

  // Bytes of the line that begins `rest`; 0: more has to be read to know.
  size_t piece_size(std::string_view rest, size_t done, bool last) const {
    const auto longest = static_cast<size_t>(kLongestLine);
    const size_t end = rest.substr(0, longest).find('\n');
    size_t size = end != std::string_view::npos ? end + 1
                  : rest.size() > longest ? whole_characters(rest, longest)
                  : last                  ? rest.size()
                                          : 0;
    if (size == 0) return 0;
    const int64_t begin = at_ + int64_t(done);
    for (const int64_t cut : cuts_) {
      const int64_t inside = cut - begin;
      if (inside > 0 && int64_t(size) - inside > kNearLineEnd) {
        size = whole_characters(rest, size_t(inside));
      }
    }
    return size;
  }

  // The first place from `from` on where a character begins.
  static size_t whole_characters(std::string_view text, size_t from) {
    while (from < text.size() &&
           continues_character(static_cast<uint8_t>(text[from]))) {
      ++from;
    }
    return from;
  }

  void begin_part() {
    const auto& last = parts_.back();
    parts_.push_back({last.begin + last.size, 0, 0});
  }

  void add(const Piece& piece) {
    while (parts_.size() <= cuts_.size() &&
           cuts_[parts_.size() - 1] <= piece.place) {
      begin_part();
    }
    std::vector<int32_t> stored(piece.tokens.begin(), piece.tokens.end());
    append_({reinterpret_cast<const uint8_t*>(stored.data()),
             stored.size() * sizeof(int32_t)});
    parts_.back().size += std::ssize(stored);
    parts_.back().bytes += std::ssize(piece.text);
    invalid_ += !piece.valid;
    unknown_ += std::count(stored.begin(), stored.end(),
                           int32_t(tokens_.tokenizer().unknown_token()));
  }

  const Bytes& text_;
  const TextTokens& tokens_;
  const std::vector<int64_t> cuts_;
  const AppendPayload& append_;
  int64_t at_ = 0;
  std::vector<TokenizedPart> parts_;
  int64_t unknown_ = 0;
  int64_t invalid_ = 0;
};

void take_summary(const std::string& summary, TokenizedText& text) {
  std::istringstream rest(summary);
  rest >> text.unknown >> text.invalid;
  for (TokenizedPart part; rest >> part.begin >> part.size >> part.bytes;) {
    text.parts.push_back(part);
  }
}

// Tokens of what cannot be read twice.
class KeptBytes : public Bytes {
 public:
  explicit KeptBytes(std::string path) : path_(std::move(path)) {}
  const std::string& path() const override { return path_; }
  int64_t size() const override { return std::ssize(bytes_); }
  void read(int64_t begin, std::span<uint8_t> out) const override {
    std::copy_n(bytes_.begin() + begin, out.size(), out.begin());
  }
  void append(std::span<const uint8_t> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
  }

 private:
  std::string path_;
  std::vector<uint8_t> bytes_;
};

std::string form_of(const Tokenizer& tokenizer,
                    const std::vector<int64_t>& cuts) {
  Sha256 file;
  file.add(tokenizer.file());
  std::string form = "tokens 1 " + hex(file.finish());
  for (const int64_t cut : cuts) (form += ' ') += std::to_string(cut);
  return form;
}

void warn(const TokenizedText& text, const std::string& path,
          DecodeObserver& observer) {
  if (text.invalid > 0) {
    observer.warned(path + ": " + std::to_string(text.invalid) +
                    " lines are not UTF-8; their bytes that are no characters "
                    "were read as U+FFFD");
  }
  if (text.unknown > 0) {
    observer.warned(
        path + ": the tokenizer has no pieces for " +
        std::to_string(text.unknown) +
        " tokens of it: bits per byte do not count what these stand for");
  }
}

}  // namespace

void read_tokens(const Bytes& tokens, int64_t begin, std::span<int64_t> out) {
  std::vector<int32_t> stored(out.size());
  constexpr auto kSize = static_cast<int64_t>(sizeof(int32_t));
  tokens.read(begin * kSize, {reinterpret_cast<uint8_t*>(stored.data()),
                              stored.size() * sizeof(int32_t)});
  std::copy(stored.begin(), stored.end(), out.begin());
}

TokenizedText open_tokenized(const std::string& path, const Bytes& text,
                             const TextTokens& tokens,
                             const std::vector<int64_t>& cuts,
                             const std::string& cache_folder,
                             DecodeObserver& observer) {
  TokenizedText opened;
  const auto decode = [&](Collection& collection, const AppendPayload& append) {
    LineTokenizer lines(text, tokens, cuts, append);
    // In the collection's own bytes, of which archives have fewer.
    lines.run([&](int64_t done) {
      collection.skip_to(int64_t(double(done) / double(text.size()) *
                                 double(collection.size())));
    });
    return Decoded{lines.summary()};
  };
  if (can_be_read_twice(path)) {
    const auto file =
        cached({cache_folder, path, form_of(tokens.tokenizer(), cuts)}, decode,
               observer);
    take_summary(file->labels(), opened);
    opened.tokens = file;
  } else {
    const auto kept = std::make_shared<KeptBytes>(text.path());
    const AppendPayload append = [&](std::span<const uint8_t> more) {
      kept->append(more);
    };
    LineTokenizer lines(text, tokens, cuts, append);
    lines.run([](int64_t) {});
    take_summary(lines.summary(), opened);
    opened.tokens = kept;
  }
  warn(opened, path, observer);
  return opened;
}

}  // namespace reformer
