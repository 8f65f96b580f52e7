// A SentencePiece model of a few lines, made once.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/data/tokenizer.h"

namespace reformer {

inline const std::vector<std::string>& small_lines() {
  static const std::vector<std::string> lines = [] {
    const std::vector<std::string> words = {
        "the",    "house", "is",     "on",    "a",    "hill", "and",  "its",
        "garden", "Größe", "straße", "läuft", "über", "den",  "berg", "haus"};
    std::vector<std::string> made;
    for (size_t i = 0; i < 200; ++i) {
      std::string line;
      for (size_t j = 0; j < 3 + i % 7; ++j) {
        if (j > 0) line += ' ';
        line += words[(i * 7 + j * (i % 5 + 1)) % words.size()];
      }
      made.push_back(line);
    }
    return made;
  }();
  return lines;
}

inline std::string trained(const std::vector<std::string>& lines,
                           const TokenizerTraining& training) {
  size_t next = 0;
  return train_tokenizer(
      [&](std::string& line) {
        if (next == lines.size()) return false;
        line = lines[next++];
        return true;
      },
      training);
}

// Its bytes; empty where the library was built without SentencePiece.
inline const std::string& small_model() {
  static const std::string bytes = [] {
    try {
      return trained(small_lines(), {PieceKind::kBpe, 330});
    } catch (const Error& error) {
      const std::string text = error.what();
      if (text.find("built without SentencePiece") == std::string::npos) throw;
      return std::string();
    }
  }();
  return bytes;
}

inline std::shared_ptr<const Tokenizer> small_tokenizer() {
  return parse_tokenizer(small_model(), "small");
}

}  // namespace reformer

#define SKIP_WITHOUT_SENTENCEPIECE()                                \
  if (reformer::small_model().empty()) {                            \
    GTEST_SKIP() << "this program was built without SentencePiece"; \
  }
