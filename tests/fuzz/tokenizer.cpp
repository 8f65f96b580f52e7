// data/tokenizer: somebody's .model, and what it does to a line.
#include "reformer/data/tokenizer.h"

#include "reformer/data/text_tokens.h"
#include "tests/data/small_tokenizer.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

std::vector<std::string> seeds() {
  if (small_model().empty()) return {"x"};
  // Smaller ones, of which a mutant hits more.
  return {small_model(),
          trained({"aa ab", "ab ba", "b a"}, {PieceKind::kBpe, 264}),
          trained({"aa ab", "ab ba", "b a"},
                  {PieceKind::kUnigram, 264, /*or_fewer=*/true})};
}

void execute(const std::string& input) {
  const auto tokenizer = parse_tokenizer(input, "fuzzed.model");
  const int64_t size = tokenizer->vocabulary_size();
  law(tokenizer->file() == input, "its file is what it was made of");
  for (const std::string_view line :
       {std::string_view("a ab  Gr\xC3\xB6\xC3\x9F"
                         "e\n\xFF"),
        std::string_view("\0x", 2), std::string_view()}) {
    const auto tokens = tokenizer->encode(line);
    for (const int64_t token : tokens) {
      law(token >= 0 && token < size, "tokens are of the vocabulary");
      (void)tokenizer->bytes_of(token);
    }
    (void)tokenizer->decode(tokens);
  }
  for (int64_t token = 0; token < std::min<int64_t>(size, 300); ++token) {
    (void)tokenizer->piece(token);
    (void)tokenizer->bytes_of(token);
  }
  for (const int64_t token :
       {tokenizer->unknown_token(), tokenizer->begin_token(),
        tokenizer->end_token()}) {
    law(token >= -1 && token < size, "control tokens are tokens or none");
  }
  const TextTokens text(tokenizer);
  (void)text.decode(text.encode("a b\n\nc"));
}

const Registered registered({"tokenizer", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
