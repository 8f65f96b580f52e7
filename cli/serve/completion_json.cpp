#include "cli/serve/completion_json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace reformer::cli {
namespace {

using Json = nlohmann::ordered_json;

bool is_utf8(const std::string& bytes) {
  try {
    static_cast<void>(Json(bytes).dump());
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

const char* type_of(int status) {
  if (status == 429) return "rate_limit_error";
  if (status == 401 || status == 403) return "authentication_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

Json finish_of(Finish finish) {
  if (finish == Finish::kNot) return nullptr;
  return finish == Finish::kStop ? "stop" : "length";
}

// JSON has no -inf.
double log_of(double probability) {
  return std::log(std::max(probability, 1e-300));
}

}  // namespace

std::string json_text(const Json& json) {
  return json.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

std::string error_text(int status, const std::string& sentence,
                       const std::string& key) {
  Json json;
  json["error"] = {{"message", sentence},
                   {"type", type_of(status)},
                   {"param", key.empty() ? Json() : Json(key)},
                   {"code", nullptr}};
  return json_text(json);
}

std::string name_of_token(const std::string& bytes) {
  if (is_utf8(bytes)) return bytes;
  std::string name = "bytes:";
  for (const char c : bytes) {
    char hex[8];
    std::snprintf(hex, sizeof(hex), "\\x%02X",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    name += hex;
  }
  return name;
}

Json CompletionAnswer::head() const {
  Json json;
  json["id"] = id_;
  json["object"] = "text_completion";
  json["created"] = created_;
  json["model"] = model_;
  json["system_fingerprint"] = "seed-" + std::to_string(seed_);
  return json;
}

// offset: of the first token in the choice's text, in bytes.
Json CompletionAnswer::logprobs_of(const std::vector<GeneratedToken>& tokens,
                                   size_t offset) const {
  if (!logprobs_) return nullptr;
  Json json = {{"tokens", Json::array()},
               {"token_logprobs", Json::array()},
               {"top_logprobs", Json::array()},
               {"text_offset", Json::array()},
               {"token_ids", Json::array()}};
  for (const auto& token : tokens) {
    json["tokens"].push_back(name_of_token(token.bytes));
    json["token_logprobs"].push_back(log_of(token.probability));
    auto top = Json::object();
    for (const auto& [other, probability] : token.alternatives) {
      const std::string bytes =
          writing_->pieces() != nullptr
              ? TokenWriter(*writing_->pieces(), false).add(other)
              : writing_->written(other);
      top[name_of_token(bytes)] = log_of(probability);
    }
    json["top_logprobs"].push_back(top);
    json["text_offset"].push_back(offset);
    json["token_ids"].push_back(token.token);
    offset += token.bytes.size();
  }
  return json;
}

Json CompletionAnswer::chunk(const GeneratedToken& token) {
  const auto choice = static_cast<size_t>(token.choice);
  if (sent_.size() <= choice) sent_.resize(choice + 1, 0);
  tokens_ += token.tokens;
  auto json = head();
  json["choices"] = {{{"index", token.choice},
                      {"text", token.text},
                      {"logprobs", logprobs_of({token}, sent_[choice])},
                      {"finish_reason", finish_of(token.finish)}}};
  sent_[choice] += token.bytes.size();
  return json;
}

void CompletionAnswer::add(const GeneratedToken& token) {
  const auto index = static_cast<size_t>(token.choice);
  if (choices_.size() <= index) choices_.resize(index + 1);
  auto& choice = choices_[index];
  tokens_ += token.tokens;
  choice.text += token.text;
  if (token.finish != Finish::kNot) {
    choice.finish = token.finish == Finish::kStop ? "stop" : "length";
  }
  if (logprobs_) choice.tokens.push_back(token);
}

Json CompletionAnswer::usage(int64_t prompt_tokens) const {
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", tokens_},
          {"total_tokens", prompt_tokens + tokens_}};
}

Json CompletionAnswer::whole(int64_t prompt_tokens) {
  auto json = head();
  json["choices"] = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    const auto& choice = choices_[i];
    json["choices"].push_back({{"index", i},
                               {"text", choice.text},
                               {"logprobs", logprobs_of(choice.tokens, 0)},
                               {"finish_reason", choice.finish}});
  }
  json["usage"] = usage(prompt_tokens);
  return json;
}

Json CompletionAnswer::usage_chunk(int64_t prompt_tokens) const {
  auto json = head();
  json["choices"] = Json::array();
  json["usage"] = usage(prompt_tokens);
  return json;
}

}  // namespace reformer::cli
