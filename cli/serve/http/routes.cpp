#include "cli/serve/http/routes.h"

#include <regex>

#include "cli/serve/completion_json.h"
#include "cli/serve/http/access.h"
#include "cli/serve/http/answers.h"
#include "cli/serve/http/server.h"
#include "cli/serve/metrics_text.h"
#include "cli/serve/page.h"
#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/version.h"

namespace reformer::cli {
namespace {

using Json = nlohmann::ordered_json;
using httplib::Request;
using httplib::Response;

constexpr bool kOpen = false;  // to who has no token
constexpr bool kToken = true;

constexpr int kClientLeft = 499;  // seen by nobody, and in /metrics

RequestLimits limits_of(const Engine& engine, const HttpOptions& options) {
  RequestLimits limits;
  limits.context = options.context;
  limits.rounds = options.most_rounds;
  limits.texts = engine.limits().batch + engine.limits().queue;
  return limits;
}

const char* type_of(const std::string& name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return "text/javascript; charset=utf-8";
}

}  // namespace

Routes::Routes(const ServedModel& model, Engine& engine,
               const HttpOptions& options)
    : model_(model),
      engine_(engine),
      options_(options),
      limits_(limits_of(engine, options)),
      completions_(model, engine, limits_) {
  if (model.language) view_ = std::make_unique<AttentionView>(*model.language);
}

Routes::Handler Routes::guarded(bool token, const Handler& handler) {
  return [this, token, handler](const httplib::Request& request,
                                httplib::Response& response) {
    try {
      check_origin(request, options_.host);
      if (token) check_token(request, options_.token);
      handler(request, response);
    } catch (const RequestError& error) {
      put_error(response, error.status(), error.what(), error.key());
    } catch (const QueueFull& error) {
      put_error(response, engine_.stopping() ? 503 : 429, error.what());
    } catch (const Interrupted&) {
      if (engine_.stopping()) {
        put_error(response, 503, "the server is being stopped");
      } else {
        put_error(response, kClientLeft, "nobody waits for this");
      }
    } catch (const std::exception& error) {
      const std::string sentence = error.what();  // LibTorch's has many lines
      put_error(response, engine_.stopping() ? 503 : 500,
                sentence.substr(0, sentence.find('\n')));
    }
  };
}

void Routes::count(int status) {
  const std::lock_guard lock(mutex_);
  ++answered_[status];
}

void Routes::models(httplib::Response& response) const {
  auto about = model_.description();
  about["context"] = options_.context;
  about["most_rounds"] = options_.most_rounds;
  about["version"] = version();
  Json json;
  json["object"] = "list";
  json["data"] = {{{"id", model_.name},
                   {"object", "model"},
                   {"created", model_.created},
                   {"owned_by", "reformer"},
                   {"reformer", about}}};
  response.set_content(json_text(json), kJson);
}

void Routes::metrics(httplib::Response& response) {
  const auto answered = [&] {
    const std::lock_guard lock(mutex_);
    return answered_;
  }();
  response.set_content(
      metrics_text(engine_.counts(), options_.predicted, answered),
      "text/plain; version=0.0.4; charset=utf-8");
}

void Routes::attention(const httplib::Request& request,
                       httplib::Response& response) {
  if (!view_) {
    throw RequestError(400, "", "a model that translates is not looked into");
  }
  const auto asked = attention_request_of(request.body, limits_);
  if (std::ssize(asked.tokens) > limits_.context) {
    throw RequestError(400, "tokens",
                       "a text may have " + std::to_string(limits_.context) +
                           " tokens here, got " +
                           std::to_string(asked.tokens.size()));
  }
  view_->check(asked);
  Json json;
  engine_.run([&] { json = view_->answer(asked); }, client_has_left);
  put_json(response, json);
}

void Routes::add_pages(httplib::Server& server) {
  for (const auto& file : page_files()) {
    const auto send =
        guarded(kOpen, [file](const Request&, Response& response) {
          response.set_header("Cache-Control", "no-cache");
          response.set_content(file.contents, type_of(file.name));
        });
    const bool main = file.name == "index.html";
    server.Get(
        main ? "/"
             : "/" + std::regex_replace(file.name, std::regex(R"(\.)"), "\\."),
        send);
  }
}

void Routes::add_to(httplib::Server& server) {
  add_pages(server);
  server.Get("/health", guarded(kOpen, [](const Request&, Response& response) {
               response.set_content(R"({"status":"ok"})", kJson);
             }));
  server.Get("/v1/models",
             guarded(kToken, [this](const Request&, Response& response) {
               models(response);
             }));
  server.Get("/metrics",
             guarded(kToken, [this](const Request&, Response& response) {
               metrics(response);
             }));
  server.Post("/v1/completions", guarded(kToken, [this](const Request& request,
                                                        Response& response) {
                completions_.complete(request, response);
              }));
  server.Post("/v1/attention", guarded(kToken, [this](const Request& request,
                                                      Response& response) {
                attention(request, response);
              }));
  server.Post("/v1/tokens", guarded(kToken, [this](const Request& request,
                                                   Response& response) {
                completions_.tokens(request, response);
              }));
  server.Post("/v1/chat/completions",
              guarded(kToken, [](const Request&, Response& response) {
                put_error(response, 404,
                          "this model continues texts, it does not chat: POST "
                          "/v1/completions");
              }));
  server.set_logger([this](const Request&, const Response& response) {
    count(response.status);
  });
}

}  // namespace reformer::cli
