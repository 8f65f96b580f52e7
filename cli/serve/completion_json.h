// Answers of the interface, as OpenAI's clients read them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/serve/generation.h"
#include "cli/serve/served_model.h"

namespace reformer::cli {

// One line of JSON; U+FFFD stands for bytes that are no UTF-8.
std::string json_text(const nlohmann::ordered_json& json);

// {"error": {"message", "type", "param", "code"}}
std::string error_text(int status, const std::string& sentence,
                       const std::string& key = "");

// What a token is called in logprobs: its text where that is UTF-8, else
// "bytes:\xE2\x82", as OpenAI's server calls such.
std::string name_of_token(const std::string& bytes);

// The answers to one request.
class CompletionAnswer {
 public:
  CompletionAnswer(std::string id, std::string model, int64_t created,
                   const TokenWriting* writing, bool logprobs, uint64_t seed)
      : id_(std::move(id)),
        model_(std::move(model)),
        created_(created),
        writing_(writing),
        logprobs_(logprobs),
        seed_(seed) {}

  // A piece of a stream: the choice of one token.
  nlohmann::ordered_json chunk(const GeneratedToken& token);

  // Gathered, for an answer in one piece.
  void add(const GeneratedToken& token);
  nlohmann::ordered_json whole(int64_t prompt_tokens);

  // The last piece of a stream that was asked for it.
  nlohmann::ordered_json usage_chunk(int64_t prompt_tokens) const;

 private:
  struct Choice {
    std::string text;
    std::string finish;
    std::vector<GeneratedToken> tokens;
  };

  nlohmann::ordered_json head() const;
  nlohmann::ordered_json logprobs_of(const std::vector<GeneratedToken>& tokens,
                                     size_t offset) const;
  nlohmann::ordered_json usage(int64_t prompt_tokens) const;

  std::string id_;
  std::string model_;
  int64_t created_;
  const TokenWriting* writing_;
  bool logprobs_;
  uint64_t seed_;
  int64_t tokens_ = 0;
  std::vector<Choice> choices_;
  std::vector<size_t> sent_;  // bytes of each choice, of a stream
};

}  // namespace reformer::cli
