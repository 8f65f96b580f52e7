// data/bitext and data/tokenized_bitext: names and lines of a folder's files.
#include "reformer/data/bitext.h"

#include <filesystem>

#include "reformer/data/tokenized_bitext.h"
#include "tests/data/small_tokenizer.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

constexpr const char* kNames[] = {"train.en", "train.de", "val.en",
                                  "val.de",   "a.tsv",    "b.de-en.tsv"};

// A byte says which files there are; their contents follow, with a zero byte
// between two.
std::vector<std::string> seeds() {
  const auto of = [](char files, const std::string& contents) {
    return std::string(1, files) + contents;
  };
  return {of(3, std::string("one\ntwo\n\0eins\nzwei\n", 18)),
          of(16, "one\teins\ntwo\tzwei\textra\n"),
          of(15, std::string("\xEF\xBB\xBFone\r\n\0\n\0a\0b", 13)),
          of(48, std::string("a\tb\n\0\xFF\tc", 8))};
}

void execute(const std::string& input) {
  if (input.empty()) return;
  const std::string root = scratch_folder("bitext");
  const std::string data = root + "/data";
  std::filesystem::remove_all(data);
  std::filesystem::remove_all(root + "/caches");
  std::filesystem::create_directory(data);
  const auto files = static_cast<uint8_t>(input[0]);
  size_t at = 1;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if ((files >> i & 1) == 0) continue;
    const size_t end = std::min(input.find('\0', at), input.size());
    put_file(data + "/" + kNames[i], input.substr(at, end - at));
    at = std::min(end + 1, input.size());
  }
  DecodeObserver observer;
  const BitextRequest request{data, "en", "de", root + "/caches"};
  const auto text = open_bitext(request, observer);
  BitextReader reader(*text);
  size_t pairs = 0;
  for (LinePair pair; reader.next(pair); ++pairs) {
    law(pair.source.find('\n') == std::string::npos &&
            pair.target.find('\n') == std::string::npos,
        "a line holds no end of a line");
  }
  law(pairs == text->labels().size(), "every pair has a label");
  if (small_model().empty()) return;
  const auto bitext =
      open_tokenized_bitext(request, *text, *small_tokenizer(), observer);
  law(bitext.pairs.size() + size_t(bitext.empty + bitext.invalid) == pairs,
      "every pair is there, or was counted as left out");
}

const Registered registered({"bitext", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
