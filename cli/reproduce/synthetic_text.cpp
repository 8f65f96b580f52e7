#include "cli/reproduce/synthetic_text.h"

#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "reformer/base/philox.h"

namespace reformer::cli {
namespace {

constexpr int kWords = 100;
constexpr int kSentences = 4;  // of a paragraph
constexpr int kNames = 2;      // of a paragraph

class Writer {
 public:
  explicit Writer(uint64_t seed)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {
    for (int i = 0; i < kWords; ++i) words_.push_back(word(1 + below(3)));
  }

  std::string paragraph() {
    std::vector<std::string> names;
    for (int i = 0; i < kNames; ++i) names.push_back(name());
    std::string text;
    for (int i = 0; i < kSentences; ++i) text += sentence(names);
    return text + "\n";
  }

 private:
  uint32_t bits() { return philox(key_, {draws_++, 0, 0, 0})[0]; }
  int64_t below(int64_t count) { return reformer::below(count, bits()); }
  char one_of(const std::string& letters) {
    return letters[static_cast<size_t>(below(std::ssize(letters)))];
  }

  std::string word(int64_t syllables) {
    std::string text;
    for (int64_t i = 0; i < syllables; ++i) {
      text += one_of("bdfgklmnprstvw");
      text += one_of("aeiou");
    }
    return text;
  }

  // Nothing predicts a new one, and what it was is said again and again.
  std::string name() {
    std::string text = word(3);
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
  }

  std::string sentence(const std::vector<std::string>& names) {
    std::string text = names[static_cast<size_t>(below(kNames))];
    const int64_t length = 5 + below(6);
    for (int64_t i = 0; i < length; ++i) text.append(" ").append(next(names));
    return text + ". ";
  }

  // One in four is a name; of the other words the first are frequent.
  std::string next(const std::vector<std::string>& names) {
    if (below(4) == 0) return names[static_cast<size_t>(below(kNames))];
    return words_[static_cast<size_t>(kWords * std::pow(bits() * 0x1p-32, 3))];
  }

  const PhiloxKey key_;
  uint32_t draws_ = 0;
  std::vector<std::string> words_;
};

}  // namespace

std::string synthetic_text(int64_t bytes, uint64_t seed) {
  Writer writer(seed);
  std::string text;
  while (static_cast<int64_t>(text.size()) < bytes) text += writer.paragraph();
  text.resize(static_cast<size_t>(bytes));
  return text;
}

}  // namespace reformer::cli
