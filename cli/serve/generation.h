// A request that is being answered: what the model's thread makes of it, and
// what the connection's thread takes of that.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/generate/prompt.h"
#include "cli/generate/text_stream.h"
#include "reformer/generate/sampler.h"

namespace reformer::cli {

enum class Finish { kNot, kLength, kStop };

struct GeneratedToken {
  int64_t choice = 0;  // which of the request's texts
  int64_t token = 0;
  std::string bytes;       // what it adds to the text
  std::string text;        // what of the text may be shown now
  double probability = 0;  // and alternatives: where they were asked for
  std::vector<Candidate> alternatives = {};
  Finish finish = Finish::kNot;
  int64_t tokens = 1;  // that it stands for: a translation for all of its own
};

struct GenerationRequest {
  std::vector<std::vector<int64_t>> prompts;  // of each text
  std::vector<int64_t> rows;                  // JoiningText::row of each
  std::vector<std::string> before;            // the prompts' ends as text: they
                                              // say what begins a line
  SamplerConfig sampler;
  int64_t max_tokens = 16;
  int64_t alternatives = -1;
  int64_t rounds = 0;
  std::vector<std::string> stops;
};

class Generation {
 public:
  // writing must outlive it.
  Generation(GenerationRequest request, const TokenWriting& writing);

  // For the connection. Takes what was made since, waiting for it at most so
  // long; throws Error where the model's thread could not go on. What is made
  // within `apart` of the last taking is taken together, at the end of that
  // time or of all texts: to wake a thread, to write and to be read takes the
  // cores 0.07 ms, of a token's 1.7 (3 layers 512/2048, 2 cores).
  std::vector<GeneratedToken> take(std::chrono::milliseconds at_most,
                                   std::chrono::milliseconds apart);
  bool done() const;  // all texts have ended, and all of them was taken
  void cancel() { cancelled_ = true; }

  // For the model's thread.
  const GenerationRequest& request() const { return request_; }
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  // Whether the text has ended with it.
  bool add(int64_t choice, int64_t token, double probability,
           std::vector<Candidate> alternatives);
  void fail(const std::string& sentence);

 private:
  struct Text {
    std::optional<TokenWriter> pieces;
    TextStream stream;
    int64_t tokens = 0;
    bool ended = false;
  };

  GenerationRequest request_;
  const TokenWriting& writing_;
  std::vector<Text> texts_;  // of the model's thread alone
  std::atomic<bool> cancelled_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable ended_;
  // When something was, of the connection; all below is under the mutex.
  std::optional<std::chrono::steady_clock::time_point> taken_;
  std::vector<GeneratedToken> made_;
  int64_t running_;
  std::optional<std::string> fault_;
};

}  // namespace reformer::cli
