// Stands in where CMake found no SentencePiece.
#include "reformer/data/tokenizer.h"
#include "reformer/base/errors.h"

namespace reformer {
namespace {

[[noreturn]] void throw_missing(const std::string& what) {
  throw Error(what +
              ": this program was built without SentencePiece; install "
              "libsentencepiece-dev and build it again");
}

}  // namespace

std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& path) {
  throw_missing("cannot read " + path);
}

std::shared_ptr<const Tokenizer> parse_tokenizer(const std::string&,
                                                 const std::string& name) {
  throw_missing("cannot read " + name);
}

std::string train_tokenizer(const NextLine&, const TokenizerTraining&) {
  throw_missing("cannot make a tokenizer");
}

}  // namespace reformer
