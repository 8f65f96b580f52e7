// Sequences of which the beginning is given: the one loop of reading, drawing
// and reading what was drawn.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "reformer/generate/decoder.h"
#include "reformer/generate/sampler.h"
#include "reformer/model/language_model.h"

namespace reformer {

struct CompletionConfig {
  SamplerConfig sampler;
  int64_t rounds = 0;  // of LSH attention; 0: the config's
  int64_t tokens = 0;  // only those below it are drawn; 0: any
};

// Texts that go on token by token, each by itself, as long as anybody likes.
//
// Where the model's positions end (learned and axial ones do, after
// Positions::limit of them) the window moves on: of a text that has no room
// left, the last limit / 2 tokens are read anew by a fresh decoder, as if the
// text began there. What was drawn before stays as it was.
//
// The model must outlive it and not change.
class Completion {
 public:
  // texts: the beginning of each, which may be empty. Throws Error for a config
  // that Sampler or Decoder refuse.
  Completion(const LanguageModel& model,
             std::vector<std::vector<int64_t>> texts,
             const CompletionConfig& config);

  // Reads what was not read yet, which `next` otherwise does first. When
  // Interrupted is thrown, texts are as they were, and may go on.
  void read(const PrefillWatch& watch = {});

  // Draws the next token of each text, [texts] int64 on the CPU, and adds it
  // there. It is read when the one after it is wanted, so never where none is.
  at::Tensor next(const PrefillWatch& watch = {});

  // Adds tokens that were not drawn, to the only text that there is.
  void append(const std::vector<int64_t>& tokens);

  // With all that was drawn and added.
  const std::vector<std::vector<int64_t>>& texts() const { return texts_; }

  // Whether the window has moved, of any of the texts.
  bool moved() const { return moved_; }

 private:
  int64_t unread() const;
  bool fits() const;
  void move_on();
  void prefill(const PrefillWatch& watch);
  void step();

  const LanguageModel& model_;
  CompletionConfig config_;
  Sampler sampler_;
  std::vector<std::vector<int64_t>> texts_;
  std::vector<std::size_t> begin_;    // of each text's window
  std::vector<std::size_t> read_;     // tokens of each text, up to where
  std::unique_ptr<Decoder> decoder_;  // null: it is all to be read anew
  at::Tensor logits_;                 // after what was read
  bool moved_ = false;
};

//   given    [batch, n] int64 in [0, vocabulary)
//   returns  [batch, length], length > n: the given tokens, and drawn ones
//            after them, each row's by itself
//
// `go_on(made)` is asked before each draw, with how many tokens each row has
// been given so far; once it says no, the rest stays 0.
at::Tensor complete(const LanguageModel& model, const at::Tensor& given,
                    int64_t length, const CompletionConfig& config,
                    const std::function<bool(int64_t made)>& go_on,
                    const PrefillWatch& watch = {});

}  // namespace reformer
