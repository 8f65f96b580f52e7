// Answers that are sent while they are made.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/serve/completion_json.h"
#include "cli/serve/generation.h"

namespace reformer::cli {

inline constexpr std::chrono::milliseconds kPoll{200};

// What a connection's thread needs while its answer is made.
struct Answering {
  std::shared_ptr<Generation> generation;
  CompletionAnswer answer;
  int64_t prompt_tokens;
  bool usage;
  std::shared_ptr<std::atomic<int64_t>> answering;
  std::vector<GeneratedToken> first = {};  // taken before the answer began
  int silent = 0;

  std::vector<GeneratedToken> take(std::chrono::milliseconds apart) {
    return first.empty() ? generation->take(kPoll, apart)
                         : std::exchange(first, {});
  }
};

// An event of a stream.
std::string event(const nlohmann::ordered_json& json);

// Server-sent events, one for each token.
void answer_in_events(httplib::Response& response,
                      const std::shared_ptr<Answering>& state);

// One piece of JSON, when all of it is there.
void answer_whole(httplib::Response& response,
                  const std::shared_ptr<Answering>& state);

}  // namespace reformer::cli
