#include "cli/serve/http/completions.h"

#include <chrono>
#include <cinttypes>
#include <mutex>
#include <optional>
#include <random>

#include "cli/serve/completion_json.h"
#include "cli/serve/http/answers.h"
#include "cli/serve/http/stream.h"
#include "reformer/base/errors.h"
#include "reformer/base/json_text.h"

namespace reformer::cli {
namespace {

using Json = nlohmann::ordered_json;

uint64_t any_seed() {
  static std::mutex mutex;
  static std::mt19937_64 random{std::random_device{}()};
  const std::lock_guard lock(mutex);
  return random() >> 11;  // JavaScript's numbers hold it
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Completions::Completions(const ServedModel& model, Engine& engine,
                         const RequestLimits& limits)
    : model_(model), engine_(engine), limits_(limits) {
  if (!model.translator) return;
  translations_ = std::make_unique<SharedTranslations>(
      [&](const std::vector<std::string>& lines) {
        std::vector<SharedTranslations::Text> texts(lines.size());
        const auto take = [&](size_t line,
                              const std::vector<Translation>& all) {
          if (!all.empty()) texts[line] = {all[0].text, all[0].tokens};
        };
        model.translator->translate(lines, take, &engine.stopping());
        return texts;
      },
      engine);
}

std::string Completions::next_id() {
  char id[48];
  std::snprintf(id, sizeof(id), "cmpl-%016" PRIx64, ++ids_);
  return id;
}

std::vector<int64_t> Completions::tokens_of(
    const RequestedPrompt& prompt) const {
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    try {
      return model_.writing->tokens_of(*text);
    } catch (const Error& error) {
      throw RequestError(400, "prompt", error.what());
    }
  }
  const auto& tokens = std::get<std::vector<int64_t>>(prompt);
  const int64_t vocabulary = model_.config.model.vocabulary;
  for (const int64_t token : tokens) {
    if (token < 0 || token >= vocabulary) {
      throw RequestError(400, "prompt",
                         "prompt: " + std::to_string(token) +
                             " is no token of this model, which has 0 to " +
                             std::to_string(vocabulary - 1));
    }
  }
  return tokens;
}

GenerationRequest Completions::generation_of(CompletionRequest& request,
                                             int64_t& prompt_tokens) const {
  if (!request.seeded) request.sampler.seed = any_seed();
  GenerationRequest generation;
  generation.sampler = request.sampler;
  generation.max_tokens = request.max_tokens;
  generation.alternatives = request.logprobs.value_or(-1);
  generation.rounds = request.rounds;
  generation.stops = request.stops;
  prompt_tokens = 0;
  for (const auto& prompt : request.prompts) {
    const auto tokens = tokens_of(prompt);
    if (std::ssize(tokens) + request.max_tokens > limits_.context) {
      throw RequestError(
          400, "max_tokens",
          "a text may have " + std::to_string(limits_.context) +
              " tokens here: the prompt has " + std::to_string(tokens.size()) +
              " and max_tokens is " + std::to_string(request.max_tokens));
    }
    prompt_tokens += std::ssize(tokens);
    const auto* text = std::get_if<std::string>(&prompt);
    for (int64_t row = 0; row < request.n; ++row) {
      generation.prompts.push_back(tokens);
      generation.rows.push_back(row);
      generation.before.push_back(text == nullptr ? "" : *text);
    }
  }
  return generation;
}

void Completions::complete(const httplib::Request& request,
                           httplib::Response& response) {
  auto asked = completion_request_of(request.body, limits_);
  if (!asked.model.empty() && asked.model != model_.name) {
    throw RequestError(404, "model",
                       "there is no model " + shortened(asked.model) +
                           " here, only " + model_.name);
  }
  if (model_.translation) return translate(asked, response);
  int64_t prompt_tokens = 0;
  auto wanted = generation_of(asked, prompt_tokens);
  CompletionAnswer answer(next_id(), model_.name, now(), model_.writing.get(),
                          asked.logprobs.has_value(), asked.sampler.seed);
  auto state = std::make_shared<Answering>(
      Answering{engine_.submit(std::move(wanted)), std::move(answer),
                prompt_tokens, asked.stream_usage, answering_});
  response.set_header("Cache-Control", "no-store");
  asked.stream ? answer_in_events(response, state)
               : answer_whole(response, state);
}

void Completions::translate(const CompletionRequest& request,
                            httplib::Response& response) {
  if (request.n != 1 || request.logprobs || !request.stops.empty()) {
    throw RequestError(400, "n",
                       "a model that translates gives one text for each "
                       "prompt: n, logprobs and stop are not for it");
  }
  if (!request.sampling.empty()) {
    throw RequestError(400, request.sampling,
                       request.sampling +
                           ": a model that translates searches for the "
                           "likeliest text, it does not draw one");
  }
  std::vector<std::string> lines;
  int64_t prompt_tokens = 0;
  for (const auto& prompt : request.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    if (text == nullptr) {
      throw RequestError(400, "prompt",
                         "prompt: a text to translate is required, not tokens");
    }
    const int64_t cut = model_.translator->tokens_too_many(*text);
    if (cut > 0) {
      throw RequestError(400, "prompt",
                         "prompt: " + std::to_string(cut) +
                             " tokens too many for the model's positions");
    }
    prompt_tokens += model_.translator->tokens_of(*text);
    lines.push_back(*text);
  }
  const auto texts = translations_->translate(lines);
  CompletionAnswer answer(next_id(), model_.name, now(), nullptr, false, 0);
  std::string events;
  for (size_t i = 0; i < texts.size(); ++i) {
    GeneratedToken token;
    token.choice = static_cast<int64_t>(i);
    token.text = texts[i].text;
    token.finish = Finish::kStop;
    token.tokens = texts[i].tokens;
    if (request.stream) {
      events += event(answer.chunk(token));
    } else {
      answer.add(token);
    }
  }
  if (!request.stream) return put_json(response, answer.whole(prompt_tokens));
  if (request.stream_usage) events += event(answer.usage_chunk(prompt_tokens));
  response.set_header("Cache-Control", "no-store");
  response.set_content(events + "data: [DONE]\n\n", kEvents);
}

// POST /v1/tokens, of our own: the tokens of a prompt, and what each is called.
void Completions::tokens(const httplib::Request& request,
                         httplib::Response& response) const {
  if (model_.translation) {
    throw RequestError(400, "", "a model that translates takes texts");
  }
  const auto asked = completion_request_of(request.body, limits_);
  const auto tokens = tokens_of(asked.prompts[0]);
  Json json = {{"object", "tokens"}, {"tokens", tokens}};
  json["names"] = Json::array();
  std::optional<TokenWriter> pieces;
  if (model_.writing->pieces() != nullptr) {
    pieces.emplace(*model_.writing->pieces());
  }
  for (const int64_t token : tokens) {
    json["names"].push_back(name_of_token(
        pieces ? pieces->add(token) : model_.writing->written(token)));
  }
  put_json(response, json);
}

}  // namespace reformer::cli
