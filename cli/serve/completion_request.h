// POST /v1/completions: what its body asks for, as OpenAI's clients write it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/generate/sampler.h"

namespace reformer::cli {

// A fault of a request, with HTTP's number for it and the key at fault.
class RequestError : public Error {
 public:
  RequestError(int status, std::string key, const std::string& sentence)
      : Error(sentence), status_(status), key_(std::move(key)) {}

  int status() const { return status_; }
  const std::string& key() const { return key_; }  // empty: none

 private:
  int status_;
  std::string key_;
};

// Text, or tokens.
using RequestedPrompt = std::variant<std::string, std::vector<int64_t>>;

struct CompletionRequest {
  std::string model;  // empty: whichever there is
  std::vector<RequestedPrompt> prompts = {std::string()};
  int64_t max_tokens = 16;
  int64_t n = 1;  // texts for each prompt
  SamplerConfig sampler;
  bool seeded = false;   // sampler.seed was given
  std::string sampling;  // a key by which it asks for what is not the likeliest
                         // text; empty: none
  std::vector<std::string> stops;
  std::optional<int64_t> logprobs;  // alternatives to tell
  bool stream = false;
  bool stream_usage = false;
  int64_t rounds = 0;  // of LSH attention; 0: the config's
};

// What a server allows.
struct RequestLimits {
  int64_t context = 1;    // tokens of a prompt with what follows it
  int64_t texts = 1;      // prompts times n
  int64_t rounds = 1024;  // of LSH attention
};

inline constexpr int64_t kMostAlternatives = 20;
inline constexpr int64_t kMostStops = 16;
inline constexpr int64_t kMostStopBytes = 1024;

// Throws RequestError (400) with a sentence for what is no JSON, no such
// request or beyond the limits.
CompletionRequest completion_request_of(const std::string& body,
                                        const RequestLimits& limits);

// POST /v1/attention, of our own: where a position of a text looked.
struct AttentionRequest {
  std::vector<int64_t> tokens;   // of the text, the position's own the last one
                                 // that counts
  int64_t position = 0;          // of the token that was predicted, from 0 on
  std::optional<int64_t> layer;  // from 0 on; none: all, on average
  std::optional<int64_t> head;   // likewise
  std::optional<int64_t> round;  // only pairs that it found
  int64_t rounds = 0;
  bool buckets = false;  // also those of every position: needs all three
};
AttentionRequest attention_request_of(const std::string& body,
                                      const RequestLimits& limits);

}  // namespace reformer::cli
