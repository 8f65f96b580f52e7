#include "cli/serve/completion_request.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "reformer/base/json_text.h"
#include "reformer/base/nearest_name.h"

namespace reformer::cli {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& key, const std::string& sentence) {
  throw RequestError(400, key, sentence);
}

// The members of an object, each asked for by name; what nobody asked for is a
// fault.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {
    if (!object.is_object()) {
      refuse("", "a JSON object is required, got " + excerpt(object));
    }
  }

  // Null where it is not there, or is JSON's null.
  const Json* find(const std::string& key) {
    known_.push_back(key);
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }

  void whole_number(const std::string& key, int64_t& value, int64_t least,
                    int64_t most) {
    if (const auto* given = find(key)) value = whole(key, *given, least, most);
  }

  void whole_number(const std::string& key, std::optional<int64_t>& value,
                    int64_t least, int64_t most) {
    if (const auto* given = find(key)) value = whole(key, *given, least, most);
  }

  void number(const std::string& key, double& value, double least, double most,
              bool above = false) {
    const auto* given = find(key);
    if (given == nullptr) return;
    const double x = given->is_number() ? given->get<double>() : NAN;
    if (!(x >= least && x <= most) || (above && x == least)) {
      std::ostringstream sentence;
      sentence << key << ": a number " << (above ? "above " : "from ") << least
               << (above ? " and up to " : " to ") << most
               << " is required, got " << excerpt(*given);
      refuse(key, sentence.str());
    }
    value = x;
  }

  void flag(const std::string& key, bool& value) {
    const auto* given = find(key);
    if (given == nullptr) return;
    if (!given->is_boolean()) {
      refuse(key, key + ": true or false is required, got " + excerpt(*given));
    }
    value = given->get<bool>();
  }

  void text(const std::string& key, std::string& value) {
    const auto* given = find(key);
    if (given == nullptr) return;
    if (!given->is_string()) {
      refuse(key, key + ": a text is required, got " + excerpt(*given));
    }
    value = given->get<std::string>();
  }

  // Of OpenAI's, but not of ours: `without` is what it does where it asks for
  // nothing.
  void only(const std::string& key, const std::vector<Json>& without,
            const std::string& advice) {
    const auto* given = find(key);
    if (given == nullptr) return;
    for (const auto& nothing : without) {
      if (*given == nothing) return;
    }
    refuse(key, key + " is not offered here" + advice);
  }

  void refuse_others() const {
    for (const auto& [key, value] : object_.items()) {
      bool known = false;
      std::string nearest;
      size_t least = std::max<size_t>(key.size() / 3, 2) + 1;
      for (const auto& name : known_) {
        known = known || name == key;
        if (key.size() > 64) continue;  // no slip of the hand
        const size_t distance = edit_distance(key, name);
        if (distance < least) {
          least = distance;
          nearest = "; did you mean " + name + "?";
        }
      }
      if (!known) {
        refuse(shortened(key), "unknown key " + excerpt(Json(key)) + nearest);
      }
    }
  }

 private:
  static int64_t whole(const std::string& key, const Json& given, int64_t least,
                       int64_t most) {
    const bool fits =
        given.is_number_unsigned()
            ? given.get<uint64_t>() <= static_cast<uint64_t>(most)
            : given.is_number_integer() && given.get<int64_t>() <= most;
    if (!fits || given.get<int64_t>() < least) {
      refuse(key, key + ": a whole number from " + std::to_string(least) +
                      " to " + std::to_string(most) + " is required, got " +
                      excerpt(given));
    }
    return given.get<int64_t>();
  }

  const Json& object_;
  std::vector<std::string> known_;
};

std::vector<int64_t> tokens_of(const std::string& key, const Json& array) {
  std::vector<int64_t> tokens;
  for (const auto& element : array) {
    if (!element.is_number_integer()) {
      refuse(key, key + ": tokens are whole numbers, got " + excerpt(element));
    }
    tokens.push_back(element.get<int64_t>());
  }
  return tokens;
}

std::vector<RequestedPrompt> prompts_of(const Json& given) {
  const std::string key = "prompt";
  if (given.is_string()) return {given.get<std::string>()};
  if (!given.is_array() || given.empty()) {
    refuse(key, "prompt: a text, several texts, or tokens are required, got " +
                    excerpt(given));
  }
  if (given[0].is_number()) return {tokens_of(key, given)};
  std::vector<RequestedPrompt> prompts;
  for (const auto& one : given) {
    if (one.is_string() && given[0].is_string()) {
      prompts.emplace_back(one.get<std::string>());
    } else if (one.is_array() && given[0].is_array()) {
      prompts.emplace_back(tokens_of(key, one));
    } else {
      refuse(key, "prompt: several are all texts or all lists of tokens, got " +
                      excerpt(one));
    }
  }
  return prompts;
}

std::vector<std::string> stops_of(const Json& given) {
  std::vector<std::string> stops;
  const auto add = [&](const Json& one) {
    const bool fits =
        one.is_string() && !one.get_ref<const std::string&>().empty() &&
        std::ssize(one.get_ref<const std::string&>()) <= kMostStopBytes;
    if (!fits) {
      refuse("stop", "stop: texts of 1 to " + std::to_string(kMostStopBytes) +
                         " bytes are required, got " + excerpt(one));
    }
    stops.push_back(one.get<std::string>());
  };
  if (!given.is_array()) {
    add(given);
  } else {
    for (const auto& one : given) add(one);
  }
  if (std::ssize(stops) > kMostStops) {
    refuse("stop", "stop: at most " + std::to_string(kMostStops) +
                       " texts are possible, got " +
                       std::to_string(stops.size()));
  }
  return stops;
}

Json parsed(const std::string& body, const RequestLimits& limits) {
  JsonLimits within;
  within.depth = 4;
  within.members = 100;
  within.elements =
      static_cast<size_t>(std::max<int64_t>(limits.context + 1, limits.texts));
  try {
    return parse_json<Json>(body, within);
  } catch (const JsonError& error) {
    refuse("", std::string("the body is no JSON that can be read: ") +
                   error.what());
  }
}

void read_sampler(Members& members, CompletionRequest& request) {
  auto& sampler = request.sampler;
  members.number("temperature", sampler.temperature, 0, 1e9);
  members.number("top_p", sampler.top_p, 0, 1, /*above=*/true);
  members.whole_number("top_k", sampler.top_k, 0,
                       std::numeric_limits<int32_t>::max());
  members.number("repetition_penalty", sampler.repetition_penalty, 0, 1e9,
                 /*above=*/true);
  members.whole_number("repetition_window", sampler.repetition_window, 0,
                       std::numeric_limits<int32_t>::max());
  const auto asks = [&](const char* key, double value, double without) {
    if (members.find(key) != nullptr && value != without) {
      request.sampling = key;
    }
  };
  asks("temperature", sampler.temperature, 0);
  asks("top_p", sampler.top_p, 1);
  asks("top_k", double(sampler.top_k), 0);
  asks("repetition_penalty", sampler.repetition_penalty, 1);
  std::optional<int64_t> seed;
  members.whole_number("seed", seed, 0, std::numeric_limits<int64_t>::max());
  request.seeded = seed.has_value();
  sampler.seed = static_cast<uint64_t>(seed.value_or(0));
}

// What OpenAI's clients may send without asking for anything by it.
void read_others(Members& members, const CompletionRequest& request) {
  std::string user;
  members.text("user", user);
  const std::string penalty = "; repetition_penalty is";
  members.only("frequency_penalty", {0, 0.0}, penalty);
  members.only("presence_penalty", {0, 0.0}, penalty);
  members.only("best_of", {1, request.n}, "; n is");
  members.only("echo", {false}, ": put the prompt before the text yourself");
  members.only("suffix", {""}, ": this model only goes on");
  members.only("logit_bias", {Json::object()}, "");
  members.only("messages", {},
               ": this model continues texts, it does not chat; send a prompt");
}

}  // namespace

CompletionRequest completion_request_of(const std::string& body,
                                        const RequestLimits& limits) {
  const Json json = parsed(body, limits);
  Members members(json);
  CompletionRequest request;
  members.text("model", request.model);
  if (const auto* prompt = members.find("prompt")) {
    request.prompts = prompts_of(*prompt);
  }
  members.whole_number("max_tokens", request.max_tokens, 1, limits.context);
  members.whole_number("n", request.n, 1, limits.texts);
  read_sampler(members, request);
  if (const auto* stop = members.find("stop")) request.stops = stops_of(*stop);
  members.whole_number("logprobs", request.logprobs, 0, kMostAlternatives);
  members.flag("stream", request.stream);
  if (const auto* options = members.find("stream_options")) {
    Members inner(*options);
    inner.flag("include_usage", request.stream_usage);
    inner.refuse_others();
  }
  members.whole_number("rounds", request.rounds, 1, limits.rounds);
  read_others(members, request);
  members.refuse_others();
  if (std::ssize(request.prompts) * request.n > limits.texts) {
    refuse("n", "at most " + std::to_string(limits.texts) +
                    " texts are possible in one request, got " +
                    std::to_string(request.prompts.size()) + " prompts and n " +
                    std::to_string(request.n));
  }
  return request;
}

AttentionRequest attention_request_of(const std::string& body,
                                      const RequestLimits& limits) {
  const Json json = parsed(body, limits);
  Members members(json);
  AttentionRequest request;
  const auto* tokens = members.find("tokens");
  if (tokens == nullptr || !tokens->is_array() || tokens->empty()) {
    refuse("tokens", "tokens: a list of at least one token is required");
  }
  request.tokens = tokens_of("tokens", *tokens);
  request.position = std::ssize(request.tokens) - 1;
  members.whole_number("position", request.position, 0,
                       std::ssize(request.tokens) - 1);
  constexpr int64_t kAny = std::numeric_limits<int32_t>::max();
  members.whole_number("layer", request.layer, 0, kAny);
  members.whole_number("head", request.head, 0, kAny);
  members.whole_number("round", request.round, 0, kAny);
  members.whole_number("rounds", request.rounds, 1, limits.rounds);
  members.flag("buckets", request.buckets);
  std::string model;
  members.text("model", model);
  members.refuse_others();
  return request;
}

}  // namespace reformer::cli
