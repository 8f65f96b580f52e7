#include "reformer/data/tokenized_bitext.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <sstream>

#include "reformer/base/errors.h"
#include "reformer/base/hex.h"
#include "reformer/base/parallel.h"
#include "reformer/base/sha256.h"
#include "reformer/base/utf8.h"

namespace reformer {
namespace {

// In the payload, before the tokens of each pair.
struct Head {
  int32_t index;
  int32_t source_length;
  int32_t target_length;
};

constexpr size_t kPairsAtOnce = 16384;
constexpr int64_t kPairsOfTask = 64;

enum class Fault : char { kNone, kEmpty, kInvalid };

struct Line {
  LinePair text;
  std::vector<int64_t> source;
  std::vector<int64_t> target;
  Fault fault = Fault::kNone;
};

void tokenize(const Tokenizer& tokenizer, Line& line) {
  if (!is_utf8(line.text.source) || !is_utf8(line.text.target)) {
    line.fault = Fault::kInvalid;
    return;
  }
  line.source = tokenizer.encode(line.text.source);
  line.target = tokenizer.encode(line.text.target);
  if (line.source.empty() || line.target.empty()) line.fault = Fault::kEmpty;
  line.source.push_back(tokenizer.end_token());
  line.target.push_back(tokenizer.end_token());
}

class PairTokenizer {
 public:
  PairTokenizer(const Tokenizer& tokenizer, const AppendPayload& append)
      : tokenizer_(tokenizer), append_(append) {}

  void add(std::vector<Line>& lines) {
    const int64_t count = std::ssize(lines);
    parallel_tasks(
        (count + kPairsOfTask - 1) / kPairsOfTask, [&](int64_t task) {
          const int64_t end = std::min(count, (task + 1) * kPairsOfTask);
          for (int64_t i = task * kPairsOfTask; i < end; ++i) {
            tokenize(tokenizer_, lines[size_t(i)]);
          }
        });
    std::vector<int32_t> records;
    for (const auto& line : lines) add(line, records);
    append_({reinterpret_cast<const uint8_t*>(records.data()),
             records.size() * sizeof(int32_t)});
  }

  std::string summary() const {
    return std::to_string(empty_) + " " + std::to_string(invalid_);
  }

 private:
  void add(const Line& line, std::vector<int32_t>& records) {
    const int32_t index = next_++;
    empty_ += line.fault == Fault::kEmpty;
    invalid_ += line.fault == Fault::kInvalid;
    if (line.fault != Fault::kNone) return;
    records.push_back(index);
    records.push_back(static_cast<int32_t>(line.source.size()));
    records.push_back(static_cast<int32_t>(line.target.size()));
    records.insert(records.end(), line.source.begin(), line.source.end());
    records.insert(records.end(), line.target.begin(), line.target.end());
  }

  const Tokenizer& tokenizer_;
  const AppendPayload& append_;
  int32_t next_ = 0;
  int64_t empty_ = 0;
  int64_t invalid_ = 0;
};

std::string form_of(const BitextRequest& request, const Tokenizer& tokenizer) {
  Sha256 file;
  file.add(tokenizer.file());
  return "bitext tokens 1 " + request.source + " " + request.target + " " +
         hex(file.finish());
}

// Where each pair is; the cache's own checksums say that these are the bytes
// that were written.
std::vector<TokenizedPair> pairs_in(const Bytes& tokens) {
  std::vector<TokenizedPair> pairs;
  std::vector<uint8_t> part;
  int64_t part_begin = 0;
  int64_t at = 0;
  while (at < tokens.size()) {
    constexpr auto kHead = static_cast<int64_t>(sizeof(Head));
    if (at < part_begin || at + kHead > part_begin + std::ssize(part)) {
      constexpr int64_t kPart = 1 << 20;
      part_begin = at;
      part.resize(size_t(std::min(kPart, tokens.size() - at)));
      tokens.read(at, part);
    }
    require(at + kHead <= tokens.size(), tokens.path(),
            ": is damaged: it ends within a pair; remove it");
    Head head;
    std::memcpy(&head, part.data() + (at - part_begin), sizeof(head));
    const int64_t length =
        int64_t{head.source_length} + int64_t{head.target_length};
    const int64_t bytes = length * int64_t(sizeof(int32_t));
    require(head.source_length > 0 && head.target_length > 0 &&
                at + kHead + bytes <= tokens.size(),
            tokens.path(), ": is damaged: a pair of ", head.source_length,
            " and ", head.target_length, " tokens; remove it");
    pairs.push_back(
        {at + kHead, head.index, head.source_length, head.target_length});
    at += kHead + bytes;
  }
  return pairs;
}

}  // namespace

void read_pair(const CacheFile& tokens, const TokenizedPair& pair,
               std::vector<int32_t>& out) {
  out.resize(size_t(pair.source_length) + size_t(pair.target_length));
  tokens.read(pair.place, {reinterpret_cast<uint8_t*>(out.data()),
                           out.size() * sizeof(int32_t)});
}

TokenizedBitext open_tokenized_bitext(const BitextRequest& request,
                                      const CacheFile& text,
                                      const Tokenizer& tokenizer,
                                      DecodeObserver& observer) {
  require(tokenizer.end_token() >= 0,
          "task.tokenizer: an end token (</s>) is required by translation, "
          "this tokenizer has none");
  require(std::ssize(text.labels()) < std::numeric_limits<int32_t>::max(),
          request.data, ": fewer than 2^31 pairs are required");
  const auto decode = [&](Collection& collection, const AppendPayload& append) {
    PairTokenizer pairs(tokenizer, append);
    BitextReader reader(text);
    std::vector<Line> lines;
    int64_t done = 0;
    for (bool more = true; more;) {
      lines.emplace_back();
      more = reader.next(lines.back().text);
      if (!more) lines.pop_back();
      if (more && lines.size() < kPairsAtOnce) continue;
      done += std::ssize(lines);
      collection.skip_to(int64_t(double(done) / double(text.labels().size()) *
                                 double(collection.size())));
      pairs.add(lines);
      lines.clear();
    }
    return Decoded{pairs.summary()};
  };
  TokenizedBitext opened;
  opened.tokens = cached({request.cache, request.data,
                          form_of(request, tokenizer), bitext_files(request)},
                         decode, observer);
  opened.pairs = pairs_in(*opened.tokens);
  std::istringstream(opened.tokens->labels()) >> opened.empty >> opened.invalid;
  return opened;
}

}  // namespace reformer
