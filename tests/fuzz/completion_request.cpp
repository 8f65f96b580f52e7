// cli/serve/completion_request: bodies of requests as strangers send them.
#include "cli/serve/completion_request.h"

#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

std::vector<std::string> seeds() {
  return {
      R"({"prompt": "ab", "max_tokens": 5, "temperature": 0.5, "top_p": 0.9})",
      R"({"prompt": ["a", "b"], "n": 2, "stop": ["x", "yz"], "seed": 7})",
      R"({"prompt": [[1, 2], [3]], "logprobs": 5, "stream": true,
          "stream_options": {"include_usage": true}, "rounds": 4})",
      R"({"prompt": [1, 255], "best_of": 1, "echo": false, "user": "me",
          "repetition_penalty": 1.2, "repetition_window": 9, "top_k": 3})",
      R"({"tokens": [1, 2, 3], "position": 1, "layer": 0, "head": 1,
          "round": 0, "buckets": true})",
  };
}

void execute_completion(const std::string& input,
                        const cli::RequestLimits& limits) {
  const auto request = cli::completion_request_of(input, limits);
  const auto texts = std::ssize(request.prompts) * request.n;
  law(texts >= 1 && texts <= limits.texts, "as many texts as are allowed");
  law(request.max_tokens >= 1 && request.max_tokens <= limits.context,
      "max_tokens is within the context");
  law(request.rounds <= limits.rounds, "rounds are within their limit");
  for (const auto& stop : request.stops) law(!stop.empty(), "no empty stop");
  const Sampler sampler(request.sampler);  // which takes it
}

void execute(const std::string& input) {
  const cli::RequestLimits limits{/*context=*/100, /*texts=*/8, /*rounds=*/8};
  try {
    execute_completion(input, limits);
  } catch (const cli::RequestError& error) {
    law(error.status() == 400, "a fault of the body is 400");
  }
  const auto request = cli::attention_request_of(input, limits);
  law(request.position >= 0 && request.position < std::ssize(request.tokens),
      "the position is one of the text's");
}

const Registered registered({"completion_request", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
